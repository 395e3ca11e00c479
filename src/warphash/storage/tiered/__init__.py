"""A table in two tiers: all pairs at home, on the CPU engine or in a file; the pairs most asked for in a cache."""
