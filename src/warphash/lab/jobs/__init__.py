"""Jobs that people do with a hash table, by this library and by others: lines of code, and time."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ParameterError
from .array_jobs import ARRAY_JOBS
from .base import Job
from .frame_jobs import FRAME_JOBS

__all__ = ["JOBS", "chosen"]

JOBS = {job.name: job for job in (*FRAME_JOBS, *ARRAY_JOBS)}
"""By their names."""


def chosen(names: Sequence[str]) -> list[Job]:
    """The jobs of some names; all if there are none. Raises `ParameterError` for another name."""
    for name in names:
        if name not in JOBS:
            raise ParameterError(f"expected jobs among {', '.join(JOBS)}, got {name!r}")
    return [JOBS[name] for name in names or JOBS]
