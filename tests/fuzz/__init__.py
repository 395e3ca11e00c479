"""Random differential testing: tables against dicts, NumPy and plain Python. ``python -m fuzz`` runs it (`__main__`)."""
