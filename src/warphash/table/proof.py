"""A table's own proof: whether its slots, its counts and its lookups agree (`BaseTable.check`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays.adapters.engine import ENGINE_MEMORY
from ..arrays.library import ArrayView
from ..errors import WarphashError
from ..storage import selection
from .parts import Parts

__all__ = ["check_locked"]


def check_locked(parts: Parts, distinct: Callable[[ArrayView], int]) -> None:
    """Raise `WarphashError` if an invariant is broken; ``distinct`` answers how many different keys there are."""
    front, storage, bound = parts.front, parts.guarded.storage, parts.facts.bound
    bounded: Any = storage
    (keys,) = parts.scans.scanned_locked(ENGINE_MEMORY, front.device, [front.key])
    problems = []
    if broken := storage.store.broken_buckets():
        problems.append(f"{broken:,} buckets break the rules of their layout")
    if not parts.facts.is_multi and (repeated := keys.rows - distinct(keys)):
        problems.append(f"{repeated:,} keys are stored twice")
    _, found = parts.lookups.present_in_any_order_locked(keys)
    if lost := keys.rows - selection.count(front.engine, found, keys.rows):
        problems.append(f"{lost:,} stored keys cannot be found")
    values: Any = storage
    if front.value is not None and front.value.has_any_length and (lost := values.lost_values(None)):
        problems.append(f"{lost:,} values are no strings")
    if bound is not None and keys.rows > bound.max_size + bounded.piece:
        problems.append(f"{keys.rows:,} keys are more than max_size={bound.max_size:,} and a piece of a batch")
    if problems:
        state = f"State: {parts.figures.stats_locked()}"
        raise WarphashError(f"{parts.figures.repr_locked()} is broken: {'; '.join(problems)}. {state}")
