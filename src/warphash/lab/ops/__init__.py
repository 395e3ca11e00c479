"""Operations of the relational verbs beside other libraries, each called as its users call it.

An operation is one entry (`Op`): its name, how its input is drawn, the oracle, our call, and the calls of the rivals.
Whatever table a call needs is built inside the timed call, on all sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..choice import chosen_of
from . import distinct, grouped, joins, membership, summaries
from .base import Op

__all__ = ["OPS", "chosen"]

OPS: dict[str, Op] = {op.name: op for op in (*distinct.OPS, *membership.OPS, *grouped.OPS, *joins.OPS, *summaries.OPS)}
"""All operations by their names, in the order of a report."""


def chosen(names: Sequence[str]) -> list[Op]:
    """The operations of some names, in the order of a report; all if no name is given.

    Raises
    ------
    ParameterError
        If there is no such operation.
    """
    return chosen_of(OPS, names, "--op")
