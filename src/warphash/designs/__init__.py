"""What a table is: one small file a design, and the registry that names them."""
