"""How tables run: engines, compiled kernels, memory, and the bulk operations over them."""
