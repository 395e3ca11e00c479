"""Groups: the distinct keys of a batch, numbered densely in the order in which they first appear."""
