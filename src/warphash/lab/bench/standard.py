"""The standard run: every design on real and on random keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...designs import registry
from ...designs.base import USEFUL_LOAD
from ...errors import DtypeError, ParameterError
from ..data import datasets, look_alikes, workloads
from ..data.workloads import Workload
from .runner import Lab, Measurement, Setting

__all__ = ["OPERATIONS", "SOURCES", "check_type", "load_factor_of", "settings_of", "standard_run", "workload_of"]

SOURCES = ("random", "normal", "tpch", *look_alikes.LOOK_ALIKES)
"""Data sets that need no file."""

OPERATIONS = ("build unique", "build", "find 100", "find 50", "find 0")
"""Operations of the standard run. The finds use the table that was built last."""


def settings_of(design: str, load_factor: float) -> list[Setting]:
    """The variants of a design that reach a load factor, or nearly do."""
    found = registry.get(design)
    widths = next((p.choices for p in found.parameters if p.name == "slots_per_bucket"), None)
    if not widths:
        return [Setting(found.name, {})]
    variants = [Setting(found.name, {"slots_per_bucket": width}) for width in widths]
    return [v for v in variants if load_factor_of(v, load_factor) >= min(load_factor, USEFUL_LOAD)]


def load_factor_of(setting: Setting, wanted: float) -> float:
    """The smaller of ``wanted`` and the highest load factor at which builds of this variant do not fail."""
    design = registry.get(setting.design)
    return min(wanted, design.safe_load_factor(design.resolve(setting.parameters)))


def workload_of(source: str, n: int | None, key: str, value: str | None, seed: int) -> Workload:
    """The workload that ``--data`` names: one of `SOURCES`, or ``FILE.parquet:COLUMN``; at most ``n`` of its keys.

    Raises
    ------
    ParameterError, DtypeError
        If there is no such data, or no such type.
    """
    for name in (key, value):
        check_type(name)
    if source == "random":
        return workloads.make(n or 1_000_000, key, value, seed)
    if source == "normal":
        return workloads.of_keys("normal", look_alikes.normal_keys(n or 1_000_000, key, seed), value, seed)
    if source in look_alikes.LOOK_ALIKES:
        return workloads.of_keys(f"like {source.upper()}", look_alikes.keys_of(source, n, key, seed), value, seed)
    if source == "tpch":
        return _line_items(datasets.tpch_line()[:n], value, seed)
    path, _, column = source.rpartition(":")
    if not path or not column:
        raise ParameterError(f"data must be {', '.join(SOURCES)} or FILE.parquet:COLUMN, got {source!r}")
    keys = datasets.parquet_column(path, column)
    if not len(keys):
        raise ParameterError(f"{source} holds no keys")
    return workloads.of_keys(column, keys[:n], value, seed)


def standard_run(
    lab: Lab,
    chosen: list[Workload],
    settings: list[Setting],
    load_factor: float,
    *,
    note: Callable[[str], None],
    operations: tuple[str, ...] = OPERATIONS,
    **options: Any,
) -> Iterator[list[Measurement]]:
    """One list of measurements for each workload and setting."""
    for workload in chosen:
        for setting in settings:
            load = load_factor_of(setting, load_factor)
            yield lab.measure(workload, setting, load, operations, note=note, **options)


def _line_items(keys: npt.NDArray[np.uint64], value: str | None, seed: int) -> Workload:
    """A workload of LINE keys. The absent keys are line 0 of the same orders: TPC-H numbers lines from 1."""
    line = np.uint64(((1 << datasets.LINE_BITS) - 1) << datasets.PART_BITS)
    values = workloads.make(len(keys), keys.dtype, value, seed).values
    return Workload("TPC-H LINE", keys, values, absent=keys & ~line)


def check_type(name: str | None) -> None:
    """Raise `DtypeError` if the benchmark takes no keys or values of a type. None stands for no values."""
    if name is None:
        return
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses some names as Python
        raise DtypeError(f"{name!r} is no NumPy type: try uint32 or int64") from None
    if dtype.kind not in "iu" or dtype.itemsize not in (4, 8):
        raise DtypeError(f"the bench takes integers of 4 or 8 bytes, got {dtype}")
