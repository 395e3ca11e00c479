"""Tables of subtables, of which one at a time is made twice or half as large."""
