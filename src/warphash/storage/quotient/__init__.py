"""Two-level tables: a directory of buckets, and a range of slots for each."""
