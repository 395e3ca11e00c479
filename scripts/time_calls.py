"""Time what a call costs: small batches of resident keys, `from_arrays`, and the first table of a pair of types.

Each rate stands beside ``a * b`` of the same library on arrays of the same length, which is one launch and one
allocation. The first figure is that of the fastest of many loops, the second that of the median loop; a loop waits for
the device once, at its end. The answers are verified before they are timed.

Usage: python scripts/time_calls.py [--device cuda] [--libraries cupy torch] [--designs bucketed_cuckoo] [--keys 1000]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import warphash

FIRST = """
import sys, time
import numpy as np
from warphash import HashMap
from warphash.runtime.devices import engine_for
design, device, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
engine_for(device)  # starts the device
for types in (("uint32", "uint32"), ("uint64", "uint64")):
    keys, values = np.arange(n, dtype=types[0]), np.arange(n, dtype=types[1])
    start = time.perf_counter()
    table = HashMap(*types, design=design, device=device, capacity=2 * n)
    table.insert(keys, values)
    assert table.find(keys)[1].all()
    print(time.perf_counter() - start)
"""
"""Prints the seconds of the first table of a process, and of the first table of two other types."""


class Library:
    """What the timing needs of an array library."""

    def __init__(self, name: str, device: str) -> None:
        self.name, self.module = name, import_module(name)
        self._device = device

    def array(self, host: np.ndarray) -> Any:
        if self.name == "torch":
            return self.module.from_numpy(host).to(self._device)
        return self.module.asarray(host)

    def host(self, array: Any) -> np.ndarray:
        return array.cpu().numpy() if self.name == "torch" else array.get() if self.name == "cupy" else array

    def wait(self) -> None:
        if self.name == "torch" and self._device != "cpu":
            self.module.cuda.synchronize()
        if self.name == "cupy":
            self.module.cuda.Device().synchronize()


def microseconds(library: Library, call: Callable[[], Any], calls: int, loops: int) -> tuple[float, float]:
    """Of a call, in the fastest loop and in the median loop."""
    for _ in range(3):
        call()
    library.wait()
    seconds = []
    gc.disable()
    for _ in range(loops):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        library.wait()
        seconds.append((time.perf_counter() - start) / calls)
    gc.enable()
    return min(seconds) * 1e6, statistics.median(seconds) * 1e6


def time_calls(library: Library, design: str, device: str, n: int, loops: int) -> dict[str, tuple[float, float]]:
    """Microseconds of each verb, as of `microseconds`."""
    rng = np.random.default_rng(n)
    host = rng.permutation(np.arange(1, n + 1, dtype=np.int32))
    keys, values = library.array(host), library.array(host[::-1].copy())
    table = warphash.HashMap("int32", "int32", design=design, device=device, capacity=4 * n, seed=1)
    table.insert(keys, values)
    found, there = map(library.host, table.find(keys))
    assert there.all() and (found == host[::-1]).all() and len(table) == n
    assert not library.host(table.assign(keys, values)).any() and library.host(table.contains(keys)).all()
    plan = table.plan(n, like=keys)
    planned, flags = plan.find(keys)
    assert (library.host(planned) == found).all()
    kind, calls = type(table), max(2, min(300, 30_000_000 // n))
    timed = {
        "a * b": lambda: keys * values,
        "find": lambda: table.find(keys),
        "contains": lambda: table.contains(keys),
        "insert": lambda: table.insert(keys, values),
        "assign": lambda: table.assign(keys, values),
        "plan.find": lambda: plan.find(keys, out=planned, found=flags),
        "plan.contains": lambda: plan.contains(keys, found=flags),
        "plan.assign": lambda: plan.assign(keys, values, added=flags),
        "from_arrays": lambda: kind.from_arrays(keys, values, design=design, device=device),
    }
    figures = {name: microseconds(library, call, calls, loops) for name, call in timed.items()}
    assert len(table) == n
    return figures


def first_tables(design: str, device: str, n: int) -> list[tuple[float, ...]]:
    """What `FIRST` prints, with an empty compile cache and with one that has the kernels."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", FIRST, design, device, str(n)]
        environment = os.environ | {"WARPHASH_CACHE_DIR": cache}
        runs = (subprocess.run(command, env=environment, capture_output=True, text=True, check=True) for _ in range(2))
        return [tuple(map(float, run.stdout.split())) for run in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time what a call costs.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--libraries", nargs="+", default=["cupy", "torch"])
    parser.add_argument("--designs", nargs="+", default=["bucketed_cuckoo"])
    parser.add_argument("--keys", nargs="+", type=int, default=[1000, 1_000_000])
    parser.add_argument("--loops", type=int, default=25)
    given = parser.parse_args()
    for name in given.libraries:
        library = Library(name, given.device)
        for design in given.designs:
            for n in given.keys:
                figures = time_calls(library, design, given.device, n, given.loops)
                product = figures["a * b"][0]
                cells = [f"{verb} {us:.1f} {median:.1f} ({us / product:.2f})" for verb, (us, median) in figures.items()]
                print(
                    f"{name}, {design}, {n:,} keys, us of the fastest and the median loop (fastest, beside a * b): ",
                    end="",
                )
                print(", ".join(cells))
    for design in given.designs:
        for n in given.keys:
            for what, (first, other) in zip(
                ("compiled", "from the cache"), first_tables(design, given.device, n), strict=True
            ):
                print(
                    f"{design}, first insert and find of {n:,} keys, {what}: {first * 1e3:.1f} ms in a process, ",
                    end="",
                )
                print(f"{other * 1e3:.1f} ms of other types")


if __name__ == "__main__":
    main()
