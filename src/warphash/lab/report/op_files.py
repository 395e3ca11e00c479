"""Measure operations beside other libraries to their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..bench.runner import Lab
from ..ops.base import Op, OpsConfig
from ..ops.run import OpRate, measure
from .kept_files import Files, keep_contest
from .op_plots import draw_ops

__all__ = ["measure_to_files"]


def measure_to_files(
    lab: Lab, ops: Sequence[Op], config: OpsConfig, files: Files, note: Callable[[str], None]
) -> tuple[list[OpRate], dict[str, str]]:
    """Measure all shapes of operations: their rates, and what was left out, as of `keep_contest`."""
    return keep_contest(
        "ops",
        lambda versions, left_out: measure(lab, ops, config, versions, left_out, note),
        lab,
        files,
        draw_ops,
    )
