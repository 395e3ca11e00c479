"""Tables of buckets: slots in arrays, keys that may move."""
