"""Tables whose pairs lie in one array: their store, and what is alike in all such families.

`array_slots` has the order of an update, `transaction` one batch from its first kernel to its commit, and `sizes` how
many slots a table should have.
"""
