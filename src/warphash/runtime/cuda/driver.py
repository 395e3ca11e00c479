"""The CUDA driver's bindings, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ...errors import WarphashError

__all__ = ["DriverError", "bindings", "check", "error", "outside_of_captures"]


class DriverError(WarphashError, RuntimeError):
    """The CUDA driver refused an operation."""


def bindings() -> ModuleType:
    """``cuda.bindings.driver``, imported when a GPU is first asked for."""
    from cuda.bindings import driver

    return driver  # type: ignore[no-any-return,unused-ignore]


def check(answer: tuple[Any, ...], what: str) -> Any:
    """What a call of the bindings answered; raises `DriverError`, with ``what`` was tried, if it failed."""
    status, *values = answer
    if status:
        raise error(status, what)
    return values[0] if len(values) == 1 else values


def error(code: int, what: str) -> DriverError:
    """The exception for a status that is no success."""
    driver = bindings()
    status = driver.CUresult(code)
    _, text = driver.cuGetErrorString(status)
    mend = ""
    if status == driver.CUresult.CUDA_ERROR_NOT_INITIALIZED:
        mend = "; CUDA does not survive a fork: start the process with multiprocessing's 'spawn'"
    explanation = text.decode() if text else "no explanation"
    return DriverError(f"{what}: the CUDA driver answered {status.name} ({explanation}){mend}")


@contextmanager
def outside_of_captures() -> Iterator[None]:
    """Let this thread call what is forbidden while a CUDA graph is captured, as long as it is no part of the graph.

    Kernels are loaded so, since a lookup may be the first one of its kind.
    """
    driver = bindings()
    before = check(
        driver.cuThreadExchangeStreamCaptureMode(driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED),
        "leaving the mode of a capture",
    )
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)
