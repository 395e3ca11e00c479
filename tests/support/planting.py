"""Plant bugs in the kernels' source, to check that a test notices them."""

from __future__ import annotations


def planted(source: str, right: str, wrong: str) -> str:
    """Replace ``right`` by ``wrong`` in ``source``.

    Raise LookupError if ``source`` does not contain ``right``. No test takes a LookupError for a noticed bug.
    """
    if right not in source:
        raise LookupError(f"the kernels no longer say {right!r}; plant the bug anew")
    return source.replace(right, wrong)
