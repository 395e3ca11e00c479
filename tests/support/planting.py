"""Plant bugs in the kernels' source, to check that a test notices them."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["planted", "planted_among"]


def planted(source: str, right: str, wrong: str) -> str:
    """Replace ``right`` by ``wrong`` in ``source``.

    Raise LookupError if ``source`` does not contain ``right``. No test takes a LookupError for a noticed bug.
    """
    if right not in source:
        raise LookupError(f"the kernels no longer say {right!r}; plant the bug anew")
    return source.replace(right, wrong)


def planted_among(mark: str, right: str, wrong: str) -> Callable[[str], str]:
    """Plant a bug in the kernels whose source has the text ``mark``, and leave all others as they are."""

    def plant(source: str) -> str:
        return planted(source, right, wrong) if mark in source else source

    return plant
