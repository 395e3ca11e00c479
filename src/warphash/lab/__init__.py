"""The laboratory: workloads, measurements that verify themselves, rivals, and the figures of the papers as data."""
