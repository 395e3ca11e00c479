"""Tables of quotients: lines of slots that keep what of a key its bucket does not tell, and a filter in each line."""
