"""Read a GPU's hardware counters during an insert: run NVIDIA's ``ncu`` around a process that fills one table.

Dynamic Hash Tables on GPUs, Figure 10: warp efficiency, cache and memory utilisation of insert kernels.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import EngineUnavailable
from ..runtime import program_log
from ..runtime.source import KernelSource
from .workloads import Workload

if TYPE_CHECKING:
    from .runner import Setting

__all__ = ["COUNTERS", "Profile", "measure_profile", "read_counters"]

COUNTERS = {
    "efficiency": ("smsp__thread_inst_executed_per_inst_executed.ratio", 100 / 32),
    "hits": ("lts__t_sector_hit_rate.pct", 1.0),
    "bandwidth": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
}
"""Counters by the last word of a panel: the profiler's name, and the factor that turns the count into per cent."""

_DURATION = "gpu__time_duration.sum"
_KERNELS = "regex:^(settle|claim|place)$"
_ACCOUNT = "account.json"
"""File beside the pairs, in which the process under the profiler says what it ran."""


@dataclass(frozen=True)
class Profile:
    """Each of `COUNTERS` in per cent, and the lost, changed and invented pairs of the table that was filled."""

    shares: dict[str, float]
    mismatches: int


def measure_profile(
    workload: Workload,
    setting: Setting,
    load_factor: float | None,
    device: str,
    seed: int = 1,
    unique: bool = False,
) -> Profile:
    """Measure each of `COUNTERS` over the kernels of one insert of a whole workload, of distinct keys.

    With ``unique``, the insert assumes that all keys are new, as the inserts of some papers do.

    Raises
    ------
    EngineUnavailable
        If there is no GPU or no profiler.
    """
    ncu = shutil.which("ncu")
    if not device.startswith("cuda") or ncu is None:
        have = "no ncu on the PATH" if device.startswith("cuda") else f"device {device!r}"
        raise EngineUnavailable(f"a profile needs a GPU and NVIDIA's profiler ncu, got {have}: install Nsight Compute")
    metrics = ",".join([*(name for name, _ in COUNTERS.values()), _DURATION])
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.npz"
        np.savez(pairs, keys=workload.keys, values=workload.keys if workload.values is None else workload.values)
        task = json.dumps(
            {
                "setting": asdict(setting),
                "load_factor": load_factor,
                "device": device,
                "seed": seed,
                "unique": unique,
            }
        )
        options = [ncu, "--csv", "--print-units", "base", "-k", _KERNELS, "--metrics", metrics]
        command = [*options, sys.executable, "-m", "warphash.lab.profiles", str(pairs), task]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineUnavailable(f"ncu ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
        account = json.loads((Path(folder) / _ACCOUNT).read_text())
    for source in account["kernels"]:
        program_log.note_source(KernelSource(**{**source, "headers": tuple(source["headers"])}))
    return Profile(read_counters(done.stdout), account["mismatches"])


def read_counters(printed: str) -> dict[str, float]:
    """Parse the output of the profiler: the mean of each of `COUNTERS` over all kernels, weighted by their time."""
    lines = printed.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches: dict[str, dict[str, float]] = defaultdict(dict)
    for row in csv.DictReader(lines[start:]):
        launches[row["ID"]][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    if not launches:
        raise EngineUnavailable(f"ncu has seen no kernel of an insert: {printed.strip()[-500:]}")
    seconds = sum(counts[_DURATION] for counts in launches.values())
    return {
        name: scale * sum(counts[counter] * counts[_DURATION] for counts in launches.values()) / seconds
        for name, (counter, scale) in COUNTERS.items()
    }


def _fill(pairs: str, task: dict[str, Any]) -> None:
    """Fill one table by one insert, and look all keys up. This is the process that runs under the profiler."""
    from .runner import Lab, Setting

    with np.load(pairs) as columns:
        workload = Workload("", columns["keys"], columns["values"], columns["keys"][:0])
    lab = Lab(task["device"])
    columns = lab.columns(workload)
    with program_log.recorded() as log:
        table = lab.empty(workload, Setting(**task["setting"]), task["load_factor"], seed=task["seed"])
        table.insert(*columns, assume_unique=task["unique"])
    account = {
        "mismatches": lab.wrong_pairs(table, columns),
        "kernels": [asdict(source) for source in log.sources()],
    }
    Path(pairs).with_name(_ACCOUNT).write_text(json.dumps(account))


if __name__ == "__main__":
    _fill(sys.argv[1], json.loads(sys.argv[2]))
