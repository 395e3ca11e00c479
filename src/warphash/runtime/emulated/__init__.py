"""The emulated engine: the CUDA kernels on fibers, for tests."""
