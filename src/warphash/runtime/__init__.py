"""How tables run: engines, the kernels that they compile, their memory, and the driver of a GPU."""
