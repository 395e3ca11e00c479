"""The tables: their verbs, locks, options, figures and files."""
