"""Regressions of the CPU engine, for airspeed velocity (asv): `CONTRIBUTING.md` has the commands.

These rates are compared between commits on one machine. `warphash bench` has the rates that are published.
"""
