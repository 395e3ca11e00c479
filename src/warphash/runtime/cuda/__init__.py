"""The GPU engine: the CUDA driver, kernels compiled at run time, and copies between host and device."""
