"""The pairs of a join, in the memory of an engine."""
