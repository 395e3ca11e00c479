"""What a job of the comparison is: its input, and how users of each library do it."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ops.run import OURS

__all__ = ["OURS", "Job", "Way", "lines_of"]

Way = Callable[[Any], Any]
"""Does the job: takes the input, and answers. What a library holds of the input was made before."""


@dataclass(frozen=True)
class Job:
    """A job that people do with a hash table.

    Attributes
    ----------
    name, title
        On the command line, and in a report.
    draw
        Draws the input: of so many rows, by a seed.
    ways
        How each contestant does it. A name begins with that of the library; ours are ``"warphash"``, with the library
        of the frames that go in and come out.
    read
        What of an answer is compared with the answers of the others.
    agree
        Whether two of these are answers to the same question.
    rows
        Rows of the input, unless other ones are asked for.
    """

    name: str
    title: str
    draw: Callable[[int, int], Any]
    ways: Mapping[str, Way]
    read: Callable[[Any], Any]
    agree: Callable[[Any, Any], bool] = operator.eq
    rows: int = 5_000_000


def lines_of(way: Way) -> int:
    """Lines of code of a way: without its head, blank lines and comments."""
    lines = [line.strip() for line in inspect.getsource(way).splitlines()[1:]]
    return sum(bool(line) and not line.startswith("#") for line in lines)
