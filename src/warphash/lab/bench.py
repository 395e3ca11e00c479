"""The standard run: every design on real and on random keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..designs import registry
from .runner import Lab, Measurement, Setting
from .workloads import Workload

__all__ = ["OPERATIONS", "settings_of", "standard_run"]

OPERATIONS = ("build unique", "build", "find 100", "find 50", "find 0")
"""What the standard run measures; the finds are of the last table built."""


def settings_of(design: str) -> list[Setting]:
    """The variants of a design that are worth a row."""
    found = registry.get(design)
    widths = next((p.choices for p in found.parameters if p.name == "slots_per_bucket"), None)
    return (
        [Setting(found.name, {"slots_per_bucket": width}) for width in widths] if widths else [Setting(found.name, {})]
    )


def load_factor_of(setting: Setting, wanted: float) -> float:
    """``wanted``, or the most that builds of this variant do not fail at."""
    design = registry.get(setting.design)
    return min(wanted, design.safe_load_factor(design.resolve(setting.parameters)))


def standard_run(
    lab: Lab,
    workloads: list[Workload],
    settings: list[Setting],
    load_factor: float,
    *,
    seed: int,
    note: Callable[[str], None],
    operations: tuple[str, ...] = OPERATIONS,
) -> Iterator[list[Measurement]]:
    """One list of measurements for each workload and setting."""
    for workload in workloads:
        for setting in settings:
            load = load_factor_of(setting, load_factor)
            yield lab.measure(workload, setting, load, operations, seed=seed, note=note)
