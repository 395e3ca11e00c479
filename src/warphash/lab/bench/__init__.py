"""The standard benchmark: build tables, time operations, verify every answer, and bound the rates by the memory's."""
