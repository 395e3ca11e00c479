"""Tests of profiles: the process under the profiler, and the parsing of its output. Few machines have a profiler."""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from warphash.errors import EngineUnavailable
from warphash.lab import profiles
from warphash.lab.profiles import measure_profile, read_counters
from warphash.lab.runner import Setting
from warphash.lab.workloads import Workload
from warphash.runtime import program_log

SOURCE = {"platform": "cuda", "program": "toy", "package": "warphash", "headers": ["a.cuh", "b.cuh"]}
ACCOUNT = {"mismatches": 3, "kernels": [SOURCE]}
KEYS = np.arange(1, 1001, dtype=np.uint32)
WORKLOAD = Workload("random", KEYS, ~KEYS, KEYS[:0])
SETTING = Setting("linear_probing", {"slots_per_bucket": 16})
LANES, HITS, BANDWIDTH = (name for name, _ in profiles.COUNTERS.values())
PRINTED = f'''==PROF== Connected to process 7
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","settle","{BANDWIDTH}","%","60"
"0","settle","{profiles._DURATION}","ns","3,000"
"0","settle","{HITS}","%","10.5"
"0","settle","{LANES}","","16"
"1","place","{BANDWIDTH}","%","20"
"1","place","{profiles._DURATION}","ns","1,000"
"1","place","{HITS}","%","50.5"
"1","place","{LANES}","","32"
'''


def test_a_kernel_counts_as_long_as_it_takes() -> None:
    assert read_counters(PRINTED) == {"efficiency": 62.5, "hits": 20.5, "bandwidth": 50.0}
    with pytest.raises(EngineUnavailable, match="no kernel"):
        read_counters("==PROF== nothing\n")


def test_without_a_profiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineUnavailable, match="device 'cpu'"):
        measure_profile(WORKLOAD, SETTING, 0.8, "cpu")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EngineUnavailable, match="no ncu"):
        measure_profile(WORKLOAD, SETTING, 0.8, "cuda")


def test_the_process_that_is_profiled_fills_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake profiler records its command, runs nothing and claims 3 mismatches. The test runs the command on a CPU."""
    ncu, told = tmp_path / "ncu", tmp_path / "told.json"
    ncu.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, shutil, sys\n"
        f"shutil.copy(sys.argv[-2], {str(tmp_path / 'pairs.npz')!r})\n"
        f"json.dump(sys.argv, open({str(told)!r}, 'w'))\n"
        f"pathlib.Path(sys.argv[-2]).with_name('account.json').write_text({json.dumps(ACCOUNT)!r})\n"
        f"print({PRINTED!r})\n"
    )
    ncu.chmod(ncu.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    with program_log.recorded() as log:
        made = measure_profile(WORKLOAD, SETTING, 0.8, "cuda", seed=3)
    assert made.shares["bandwidth"] == 50.0 and made.mismatches == 3
    assert [asdict(source) for source in log.sources()] == [{**SOURCE, "headers": ("a.cuh", "b.cuh")}]
    arguments = json.loads(told.read_text())
    assert arguments[-5:-2] == [sys.executable, "-m", "warphash.lab.profiles"]
    task = json.loads(arguments[-1])
    assert task == {"setting": vars(SETTING), "load_factor": 0.8, "device": "cuda", "seed": 3, "unique": False}
    filled = []
    monkeypatch.setattr(
        "warphash.HashMap.insert",
        lambda table, *columns, assume_unique: filled.append((len(table), columns, assume_unique)),
    )
    for unique in (False, True):
        profiles._fill(str(tmp_path / "pairs.npz"), {**task, "device": "cpu", "unique": unique})
        account = json.loads((tmp_path / "account.json").read_text())
        assert account["mismatches"] == 2 * len(KEYS)  # no key is there, and none is counted
        assert ("cpu", "linear_probing") in {(source["platform"], source["program"]) for source in account["kernels"]}
    (size, (keys, values), vouched), (*_, vouched_then) = filled
    assert not vouched and vouched_then
    assert size == 0 and (keys == KEYS).all() and (values == ~KEYS).all()
    ncu.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no permission')\n")
    with pytest.raises(EngineUnavailable, match="ended with 1: no permission"):
        measure_profile(WORKLOAD, SETTING, 0.8, "cuda")
