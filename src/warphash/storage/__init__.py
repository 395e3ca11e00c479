"""What a table is made of, in memory: its slots, its rows, and how both grow."""
