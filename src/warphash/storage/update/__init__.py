"""Updates of tables whose pairs lie in one array: what is alike in all such families."""
