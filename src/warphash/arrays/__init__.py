"""Arrays of any library in, the same kind out; and what a row of keys or values is."""
