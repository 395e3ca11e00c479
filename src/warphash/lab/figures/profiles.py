"""Read a GPU's hardware counters: run NVIDIA's ``ncu`` around a process that fills one table, and looks its keys up.

Dynamic Hash Tables on GPUs, Figure 10: warp efficiency, cache and memory utilisation of insert kernels. Better GPU Hash
Tables, Figure 15: throughput of the memory, and sectors per key.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import EngineUnavailable
from ...runtime import program_log
from ...runtime.source import KernelSource
from ..bench import turns
from ..data.workloads import Workload
from .sectors import SECTOR_BYTES

if TYPE_CHECKING:
    from ..bench.runner import Setting

__all__ = ["AMOUNTS", "OPERATIONS", "SHARES", "Profile", "measure_profile", "read_counters"]

SHARES = {
    "efficiency": (("smsp__thread_inst_executed_per_inst_executed.ratio",), 100 / 32),
    "hits": (("lts__t_sector_hit_rate.pct",), 1.0),
    "bandwidth": (("dram__throughput.avg.pct_of_peak_sustained_elapsed",), 1.0),
    "throughput": (("dram__bytes_read.sum.per_second", "dram__bytes_write.sum.per_second"), 2.0**-30),
}
"""Counters that say how a kernel runs, by the last word of a panel: the profiler's names, whose counts are added, and
the factor that turns them into the panel's unit. Of several kernels, the mean counts, each weighted by its time."""

AMOUNTS = {
    "sectors": (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1 / SECTOR_BYTES),
    "requests": (("lts__t_sectors_srcunit_tex.sum",), 1.0),
}
"""Counters of what kernels move. Of several kernels, the sum for each key counts."""

_INSERT = ("(settle|claim|place)[a-z_]*", "count_parts[48]|partition[48]")
OPERATIONS = {"insert": _INSERT, "unique": _INSERT, "find": ("find",)}
"""Kernels of an operation, and those that copy its batch into the order of the table. The copies count among `AMOUNTS`,
not among `SHARES`. ``"unique"`` is an insert that assumes that all keys are new, as those of some papers."""

_DURATION = "gpu__time_duration.sum"
_ACCOUNT = "account.json"
"""File beside the pairs, in which the process under the profiler says what it ran."""


@dataclass(frozen=True)
class Profile:
    """`SHARES` and `AMOUNTS` of an operation; and the lost, changed and invented pairs of the table that was filled."""

    counts: dict[str, float]
    mismatches: int


def measure_profile(
    workload: Workload,
    setting: Setting,
    load_factor: float | None,
    device: str,
    operation: str = "insert",
    seed: int = 1,
) -> Profile:
    """Measure each of `SHARES` and `AMOUNTS` over the kernels of one of `OPERATIONS` on a whole workload.

    A find looks up the keys in the order in which they were inserted.

    Raises
    ------
    EngineUnavailable
        If there is no GPU or no profiler.
    """
    ncu = shutil.which("ncu")
    if not device.startswith("cuda") or ncu is None:
        have = "no ncu on the PATH" if device.startswith("cuda") else f"device {device!r}"
        raise EngineUnavailable(f"a profile needs a GPU and NVIDIA's profiler ncu, got {have}: install Nsight Compute")
    counted = [counter for counters, _ in (SHARES | AMOUNTS).values() for counter in counters]
    kernels = f"regex:^({'|'.join(OPERATIONS[operation])})$"
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.npz"
        np.savez(pairs, keys=workload.keys, values=workload.keys if workload.values is None else workload.values)
        task = json.dumps(
            {
                "setting": asdict(setting),
                "load_factor": load_factor,
                "device": device,
                "seed": seed,
                "operation": operation,
            }
        )
        options = [ncu, "--csv", "--print-units", "base", "-k", kernels, "--metrics", ",".join([*counted, _DURATION])]
        command = [*options, sys.executable, "-m", "warphash.lab.figures.profiles", str(pairs), task]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=turns.without())
        if done.returncode:
            raise EngineUnavailable(f"ncu ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
        account = json.loads((Path(folder) / _ACCOUNT).read_text())
    for source in account["kernels"]:
        program_log.note_source(KernelSource(**{**source, "headers": tuple(source["headers"])}))
    return Profile(read_counters(done.stdout, operation, len(workload.keys)), account["mismatches"])


def read_counters(printed: str, operation: str, keys: int) -> dict[str, float]:
    """Parse the output of the profiler into `SHARES` and `AMOUNTS` of an operation on so many keys."""
    lines = printed.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    launches: dict[str, dict[str, float]] = defaultdict(dict)
    kernels: dict[str, str] = {}
    for row in csv.DictReader(lines[start:]):
        launches[row["ID"]][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        kernels[row["ID"]] = row["Kernel Name"]
    own = [counts for number, counts in launches.items() if re.fullmatch(OPERATIONS[operation][0], kernels[number])]
    if not own:
        raise EngineUnavailable(f"ncu has seen no kernel of {operation!r}: {printed.strip()[-500:]}")
    seconds = sum(counts[_DURATION] for counts in own)
    return {
        name: scale * sum(counts[counter] * counts[_DURATION] for counts in own for counter in counters) / seconds
        for name, (counters, scale) in SHARES.items()
    } | {
        name: scale * sum(counts[counter] for counts in launches.values() for counter in counters) / keys
        for name, (counters, scale) in AMOUNTS.items()
    }


def _run(pairs: str, task: dict[str, Any]) -> None:
    """Fill one table by one insert, and look its keys up. This is the process that runs under the profiler.

    The lookup verifies the table, whose keys may repeat. It is also the one find that is profiled.
    """
    from ..bench.runner import Lab, Setting

    with np.load(pairs) as columns:
        workload = Workload("", columns["keys"], columns["values"], columns["keys"][:0])
    lab = Lab(task["device"])
    columns = lab.columns(workload)
    with program_log.recorded() as log:
        table = lab.empty(workload, Setting(**task["setting"]), task["load_factor"], seed=task["seed"])
        table.insert(*columns, assume_unique=task["operation"] != "insert")
    oracle = lab.oracle(workload.keys, workload.values)
    values, found = map(lab.back, table.find(columns[0]))
    account = {
        "mismatches": oracle.check_find(workload.keys, values, found) + abs(len(table) - oracle.distinct),
        "kernels": [asdict(source) for source in log.sources()],
    }
    Path(pairs).with_name(_ACCOUNT).write_text(json.dumps(account))


if __name__ == "__main__":
    _run(sys.argv[1], json.loads(sys.argv[2]))
