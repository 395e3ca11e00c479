"""Random differential tests: tables against dicts, NumPy and plain Python. `__main__` runs them."""
