"""Keys and values to measure with: random words, workloads, data sets, and look-alikes of those that are not public."""
