"""Measure operations beside other libraries to their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from ..bench.runner import Lab
from ..ops.base import Op, OpsConfig
from ..ops.libraries import installed
from ..ops.run import OpRate, measure
from . import results
from .kept_files import Files, keep
from .op_plots import draw_ops

__all__ = ["measure_to_files"]


def measure_to_files(
    lab: Lab, ops: Sequence[Op], config: OpsConfig, files: Files, note: Callable[[str], None]
) -> tuple[list[OpRate], dict[str, str]]:
    """Measure all shapes of operations. What stops it leaves the files as of `keep`.

    Returns
    -------
    rates, not_measured
        All rates; and the libraries and the contestants that were left out, and why.
    """
    versions, missing = installed(lab.device)
    left_out = dict.fromkeys(missing, "not installed")
    rates = keep(
        measure(lab, ops, config, versions, left_out, note),
        lab,
        files,
        lambda found: {
            "libraries": versions,
            "not_measured": left_out,
            "ops": [asdict(rate) for rate in found],
        },
        lambda found, complete: draw_ops(found, files.plot, lab.machine, results.made_by(files.command), complete),
    )
    return rates, left_out
