"""Owners: the ranks that own the keys of a batch, and the batch in their order."""
