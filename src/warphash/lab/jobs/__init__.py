"""Jobs that people do with a hash table, by this library and by others: lines of code, and time."""

from __future__ import annotations

from collections.abc import Sequence

from ..choice import chosen_of
from .array_jobs import ARRAY_JOBS
from .base import Job
from .frame_jobs import FRAME_JOBS

__all__ = ["JOBS", "chosen"]

JOBS = {job.name: job for job in (*FRAME_JOBS, *ARRAY_JOBS)}
"""By their names."""


def chosen(names: Sequence[str]) -> list[Job]:
    """The jobs of some names, in the order of a report; all if there are none. Raises as `chosen_of`."""
    return chosen_of(JOBS, names, "--job")
