"""Bugs planted in the kernels' source, to see that a test notices them."""

from __future__ import annotations


def planted(source: str, right: str, wrong: str) -> str:
    """``source`` with ``wrong`` for ``right``; a LookupError, which no test takes for a noticed bug, if it is gone."""
    if right not in source:
        raise LookupError(f"the kernels no longer say {right!r}; plant the bug anew")
    return source.replace(right, wrong)
