"""Bounded tables: at most so many keys, and a policy that says which keys leave."""
