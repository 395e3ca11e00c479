"""Tests of profiles: the process under the profiler, and the parsing of its output. Few machines have a profiler."""

from __future__ import annotations

import json
import re
import stat
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warphash
from warphash import HashMap
from warphash.errors import EngineUnavailable
from warphash.lab.bench.runner import Setting
from warphash.lab.data.workloads import Workload
from warphash.lab.figures import profiles
from warphash.lab.figures.profiles import measure_profile, read_counters
from warphash.runtime import program_log

SOURCE = {"platform": "cuda", "program": "toy", "package": "warphash", "headers": ["a.cuh", "b.cuh"]}
ACCOUNT = {"mismatches": 3, "kernels": [SOURCE]}
KEYS = np.arange(1, 1001, dtype=np.uint32)
WORKLOAD = Workload("random", KEYS, ~KEYS, KEYS[:0])
SETTING = Setting("linear_probing", {"slots_per_bucket": 16})
(LANES,), (HITS,), (BANDWIDTH,), (READ_PER_S, WRITTEN_PER_S) = (counters for counters, _ in profiles.SHARES.values())
(READ, WRITTEN), (REQUESTS,) = (counters for counters, _ in profiles.AMOUNTS.values())
OF_ALL = (profiles._DURATION, LANES, HITS, BANDWIDTH, READ_PER_S, WRITTEN_PER_S, READ, WRITTEN, REQUESTS)


def printed(launches: dict[str, tuple[float, ...]]) -> str:
    """What the profiler prints of some kernels: the counts of each, in the order of `OF_ALL`."""
    return "".join(
        [
            "==PROF== Connected to process 7\n",
            '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n',
            *(
                f'"{number}","{kernel}","{counter}","unit","{count:,}"\n'
                for number, (kernel, counts) in enumerate(launches.items())
                for counter, count in zip(OF_ALL, counts, strict=True)
            ),
        ]
    )


PRINTED = printed(
    {
        "settle": (3000, 16, 10.5, 60, 2**31, 2**30, 48_000, 16_000, 4000),
        "place": (1000, 32, 50.5, 20, 2**30, 2**30, 16_000, 16_000, 3000),
    }
)


def test_all_kernels_of_an_insert_count() -> None:
    """Those of all families, as ``place_next``, which is the second round of an insert into an iceberg table."""
    headers = (Path(warphash.__file__).parent / "kernels").rglob("entries.cuh")
    names = {name for header in headers for name in re.findall(r"WARPHASH_ENTRY\((\w+)", header.read_text())}
    its = {name for name in names if name.startswith(("settle", "claim", "place"))}
    assert {"settle", "settle_new", "claim", "place", "place_next"} <= its
    assert all(re.fullmatch(profiles.OPERATIONS["unique"][0], name) for name in its)
    assert not any(re.fullmatch(profiles.OPERATIONS["unique"][0], name) for name in names - its)


def test_a_kernel_counts_as_long_as_it_takes() -> None:
    found = read_counters(PRINTED, "insert", 1000)
    assert found == {
        "efficiency": 62.5,
        "hits": 20.5,
        "bandwidth": 50.0,
        "throughput": 2.75,
        "sectors": 3.0,
        "requests": 7.0,
    }
    with pytest.raises(EngineUnavailable, match="no kernel of 'find'"):
        read_counters(PRINTED, "find", 1000)


def test_copies_of_a_batch_move_sectors_and_count_for_no_share() -> None:
    copies = printed(
        {
            "count_parts4": (5000, 1, 1, 1, 1, 1, 32_000, 0, 500),
            "place": (1000, 32, 50.5, 20, 2**30, 0, 64_000, 0, 1000),
        }
    )
    found = read_counters(copies, "unique", 1000)
    assert (found["efficiency"], found["throughput"]) == (100.0, 1.0)
    assert (found["sectors"], found["requests"]) == (3.0, 1.5)


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
    assert made.counts["bandwidth"] == 50.0 and made.mismatches == 3
    assert [asdict(source) for source in log.sources()] == [{**SOURCE, "headers": ("a.cuh", "b.cuh")}]
    arguments = json.loads(told.read_text())
    assert arguments[-5:-2] == [sys.executable, "-m", "warphash.lab.figures.profiles"]
    assert arguments[arguments.index("-k") + 1] == "regex:^((settle|claim|place)[a-z_]*|count_parts[48]|partition[48])$"
    assert set(arguments[arguments.index("--metrics") + 1].split(",")) == set(OF_ALL)
    task = json.loads(arguments[-1])
    assert task == {"setting": vars(SETTING), "load_factor": 0.8, "device": "cuda", "seed": 3, "operation": "insert"}
    calls: list[Any] = []
    monkeypatch.setattr(
        "warphash.HashMap.insert",
        lambda table, *columns, assume_unique: calls.append((len(table), columns, assume_unique)),
    )
    look = HashMap.find
    monkeypatch.setattr("warphash.HashMap.find", lambda table, keys: calls.append(keys) or look(table, keys))
    for operation in profiles.OPERATIONS:
        profiles._run(str(tmp_path / "pairs.npz"), {**task, "device": "cpu", "operation": operation})
        account = json.loads((tmp_path / "account.json").read_text())
        assert account["mismatches"] == 2 * len(KEYS)  # no key is there, and none is counted
        assert ("cpu", "linear_probing") in {(source["platform"], source["program"]) for source in account["kernels"]}
    fills, finds = calls[::2], calls[1::2]  # one find behind each insert, also where the find is profiled
    (size, (keys, values), vouched), (*_, vouched_then), (*_, vouched_last) = fills
    assert not vouched and vouched_then and vouched_last
    assert all((found == KEYS).all() for found in finds)
    assert size == 0 and (keys == KEYS).all() and (values == ~KEYS).all()
    ncu.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no permission')\n")
    with pytest.raises(EngineUnavailable, match="ended with 1: no permission"):
        measure_profile(WORKLOAD, SETTING, 0.8, "cuda")


def test_a_profiled_table_may_have_keys_that_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, keys = tmp_path / "pairs.npz", np.concatenate([KEYS, KEYS[:400]])
    np.savez(pairs, keys=keys, values=np.arange(len(keys), dtype=np.uint32))
    task = {"setting": vars(SETTING), "load_factor": 0.8, "device": "cpu", "seed": 3, "operation": "insert"}

    def mismatches() -> int:
        profiles._run(str(pairs), task)
        return int(json.loads((tmp_path / "account.json").read_text())["mismatches"])

    assert mismatches() == 0
    insert = HashMap.insert
    monkeypatch.setattr(
        "warphash.HashMap.insert", lambda table, keys, values, **options: insert(table, keys[400:], values[400:] + 1)
    )
    assert mismatches() == len(keys)  # each key's value is one of another key
