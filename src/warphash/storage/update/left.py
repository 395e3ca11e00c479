"""Batches that are launched and left: what an array offers for them, and what a store notes of them.

A batch that is left is not waited for. The kernels write what became of it to host memory. A later call looks there,
and counts the keys of the batches that have ended. Until then, the size of the table has an upper bound: no batch adds
more keys than it has elements.

A batch is several launches. An interrupt may come between two of them, and so may an error of the driver, which loads a
kernel when it is first launched. Therefore the batches that were left are forgotten while another one is launched, and
noted again behind it. If it stops half way, the recovery of the store asks for no answers, and counts the keys in the
slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ..batch import Batch
from ..scratch import Outcome

__all__ = ["ErasingArray", "LeavingArray", "Left", "LeftBuild"]


class Left(NamedTuple):
    """A batch that was left, and is not counted yet.

    Attributes
    ----------
    ticket
        By which the array knows it.
    n
        Its elements, if it adds keys; 0 of an erase.
    """

    ticket: int
    n: int


class LeftBuild(Protocol):
    """A build that was left, and whose outcome is not known yet. The caller's arrays may have changed since.

    Attributes
    ----------
    n, unique
        As of `Batch`.
    """

    @property
    def n(self) -> int: ...
    @property
    def unique(self) -> bool: ...
    def end(self, stream: Any) -> int | None:
        """End the build: the keys that it has added; None if some elements have no slot. Waits.

        The array is `cleared` then.
        """

    def elements(self, stream: Any) -> tuple[Batch, object]:
        """The elements in some order, and what keeps their memory. May be asked for more than once. Waits.

        Raises
        ------
        MemoryError
        """


class LeavingArray(Protocol):
    """An array that has updates of which nobody need wait for the end."""

    most_left: int
    """Batches that may be under way."""

    most_few: int
    """Elements of a batch that `leave_few` may take."""

    most_awaited: int
    """Elements of batches that may be under way when `leave_few` has launched another one."""

    leave_few: Callable[[int, int, int, int, int, int, int, Any], int] | None
    """``leave_few(keys, values, n, op, kind, flags, awaited, stream)`` is a short way to `leave` a batch of few
    elements that combines no values. None while `leave` has more to do."""

    def leave(self, given: Batch, left: int, awaited: int, new_share: float) -> int:
        """Launch a batch, and do not wait: its ticket; 0 for a batch that cannot be left, or not behind so many.

        An array that is not cleared is cleared ahead of the launch.

        Parameters
        ----------
        given
            With room for its flags. It combines no values.
        left, awaited
            How many batches were left before, and the elements of those that add keys.
        new_share
            Of the elements of the last batch that is counted, how many brought new keys: a hint.

        Raises
        ------
        MemoryError
            As other errors and interrupts, this may come between two launches.
        """

    def answer(self, ticket: int) -> Outcome | None:
        """What became of a batch; None if that is not known yet, or only `outcome` says it."""

    def outcome(self, stream: Any = None) -> Outcome:
        """What became of the last batch. Waits."""

    def forget_left(self) -> None:
        """Give back memory for batches that are left: there are none, and every pair has a slot."""


class ErasingArray(LeavingArray, Protocol):
    """An array whose erases can be left, too."""

    def leave_erase(self, given: Batch) -> int:
        """As `leave`, of an erase. The array has fewer than `most_left` batches under way."""
