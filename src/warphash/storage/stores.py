"""The kernels and the store of a table's kind: what slots hold, and who makes the store of a design's family."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from ..designs.base import Design
from ..runtime.engine import KernelSpec
from .hash_constants import HASHES

__all__ = ["kernel_spec", "lies_in_rows", "spec_of", "store_maker", "widths_of"]


def _word(nbytes: int) -> int:
    return 4 if nbytes <= 4 else 8


def lies_in_rows(design: Design, key_bytes: int, value_bytes: int) -> bool:
    """Whether keys or values are too wide for the slots of a design, and lie in rows behind them."""
    return not design.layout.in_place and (key_bytes > 8 or value_bytes > 8)


def widths_of(design: Design, key_bytes: int, value_bytes: int) -> tuple[int, int]:
    """Widths of keys and values as kernels take them.

    Both are words. Where a design has wider keys and values in place, those of keys are powers of two, and those of
    values are multiples of 4. For rows, both are 8: a fingerprint and a row number.
    """
    if lies_in_rows(design, key_bytes, value_bytes):
        return 8, 8
    key = _word(key_bytes) if key_bytes <= 8 else 1 << (key_bytes - 1).bit_length()
    wide = key_bytes > 8 or value_bytes > 8
    return key, -(-value_bytes // 4) * 4 if wide else _word(value_bytes) if value_bytes else 0


def kernel_spec(
    design: Design, parameters: Mapping[str, Any], key_bytes: int, value_bytes: int, hash: str
) -> KernelSpec:
    """The kernels of a design for keys and values of such widths, as `widths_of` gives them.

    Parameters
    ----------
    hash
        The family of hash functions: one of `hash_constants.HASHES`.
    """
    layout = design.layout
    slots = layout.slots_per_bucket(parameters, key_bytes, value_bytes)
    constants = {**design.fields(parameters), "family": HASHES.index(hash)}
    if layout.in_place:
        constants["value_bytes"] = value_bytes
    return KernelSpec(
        design.name,
        key_bytes,
        value_bytes,
        slots,
        tuple(sorted(constants.items())),
        layout=layout,
        splits=design.splits(parameters, slots, layout.slot_bytes(key_bytes, value_bytes)),
    )


@cache
def spec_of(
    design: Design, parameters: tuple[tuple[str, Any], ...], key_bytes: int, value_bytes: int, hash: str
) -> KernelSpec:
    """One object for all tables of a kind, which knows its widths and its hash already."""
    return kernel_spec(design, dict(parameters), *widths_of(design, key_bytes, value_bytes), hash)


@cache
def store_maker(family: str) -> Any:
    """``make_store`` of a family. A process imports only the families that its tables need."""
    return import_module(f".{family}.store", __package__).make_store
