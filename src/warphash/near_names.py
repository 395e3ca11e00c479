"""The nearest of the names that there are, for errors about a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

__all__ = ["did_you_mean"]

_MOST = 3
"""Names that an error shows, at most."""


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    """A question that names the nearest of some names, for the end of an error; an empty string if none is near.

    Names may be of any type. Their texts are compared, without case.
    """
    shown = {str(each): each for each in names}
    lower = {text.lower(): text for text in shown}
    near = [lower[text] for text in get_close_matches(str(name).lower(), lower, _MOST)]
    return f"did you mean {' or '.join(repr(shown[text]) for text in near)}?" if near else ""
