"""The laboratory: workloads, verified measurements, comparisons with other libraries, and the papers' figures."""
