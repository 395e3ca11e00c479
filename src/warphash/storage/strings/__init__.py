"""Tables whose keys are strings of any length: each distinct string has a number, and a store keeps the numbers."""
