"""Tables of chains: a list of nodes for each bucket, and the pool of nodes."""
