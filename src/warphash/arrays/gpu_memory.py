"""Which GPU an address is on. Only the driver knows, and only ``runtime`` talks to the driver: it answers here.

``__cuda_array_interface__`` has an address, and does not say on which GPU.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["answer_with", "gpu_of"]

_ask: Callable[[int], int | None] = lambda address: None  # noqa: E731  # until `answer_with`


def answer_with(ask: Callable[[int], int | None]) -> None:
    """Have ``ask(address)`` answer for all addresses: the index of a GPU, or None for memory of no GPU."""
    global _ask
    _ask = ask


def gpu_of(address: int) -> int:
    """The index of the GPU that an address is on; 0 if nobody knows, as for an array without elements."""
    return (_ask(address) if address else None) or 0
