"""Numbers and lists that several commands take, and their limits."""

from __future__ import annotations

from collections.abc import Sequence

import typer

__all__ = ["MOST_SEED", "keys_of", "listed"]

MOST_SEED = (1 << 32) - 1
_MOST_KEYS = 1 << 40


def keys_of(text: str) -> int:
    """A number of keys, such as 1000000, 1_000_000 or 1e6.

    Raises
    ------
    typer.BadParameter
        For anything else, and for a number out of range.
    """
    try:
        number = int(text)
    except ValueError:
        try:
            number = int(float(text)) if float(text).is_integer() else 0
        except (ValueError, OverflowError):
            number = 0
    if not 1 <= number <= _MOST_KEYS:
        raise typer.BadParameter(f"expected a whole number from 1 to 2^40, such as 1000000 or 1e6, got {text!r}")
    return number


def listed(texts: Sequence[str] | None) -> list[str]:
    """The names in values of an option that may be given several times, or once with commas."""
    return [name.strip() for text in texts or () for name in text.split(",")]
