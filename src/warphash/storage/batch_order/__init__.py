"""The order in which a batch goes to a table, and what a sample of the batch tells about its keys.

`parts` says from sizes alone which parts of a table help. `ordering` brings updates in the order of the parts, and
`lookups` brings keys there and answers back. `calibrate` measures from which size lookups gain. `hot_keys` combines the
elements of keys that repeat often.
"""
