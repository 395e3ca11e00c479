"""Forks at random times while threads are in calls: the child answers rightly or refuses, and the parent goes on.

Threads of the parent update in ways that keep what the stable keys hold, so their right answers are known at any time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.child import Child, folder
from fuzz.example import Example, require
from warphash import HashMap, WarphashError

SECONDS = 10  # of a child, which needs some milliseconds
FILES = ("stadium", "tiered")


def run(example: Example) -> None:
    example.choose_design()
    n = example.choose([200, 5000, 200_000])
    with folder() as home:
        table = _table(example, n, home)
        _fork_while_busy(example, table, n, home)
        with suppress(WarphashError):
            table.close()


def _table(example: Example, n: int, folder: Path) -> Any:
    options: dict[str, Any] = {}
    if example.design in FILES and example.happens(0.5):
        options["memory"] = folder / "table"
    if example.design == "tiered":
        options |= {"write": example.choose(["through", "back"]), "device_capacity": max(64, n // 10)}
    key, value = example.choose([("i8", "i8"), ("u4", "u4"), ("V16", "i8"), ("str", "i8")])
    if options.get("memory") and key == "str":
        key = "u4"
    example.note(f"{key}:{value}, {n} keys, {options}")
    table: Any = HashMap(key, value, design=example.design, device="cpu", seed=example.between(0, 99), **options)
    table.insert(_keys(table, np.arange(n)), np.arange(n).astype(value))
    if options.get("memory"):
        table.flush()
    return table


def _keys(table: Any, numbers: Any) -> Any:
    dtype = table.key_dtype
    if not isinstance(dtype, np.dtype) or dtype.hasobject or dtype.kind == "T":
        return [str(number) for number in numbers.tolist()]
    if dtype.kind == "V" and dtype.itemsize == 16:
        return np.repeat(numbers.astype("u8"), 2).view("V16")
    return numbers.astype(dtype)


def _fork_while_busy(example: Example, table: Any, n: int, folder: Path) -> None:
    keys, values = _keys(table, np.arange(n)), np.arange(n).astype(table.value_dtype)
    new = _keys(table, np.arange(n, 2 * n))
    busy = _busy_calls(table, keys, values, new, folder)
    names = [example.choose(sorted(busy)) for _ in range(example.between(1, 3))]
    example.note(f"threads in {names}")
    stop, raised = threading.Event(), list[BaseException]()

    def work(call: Callable[[], Any]) -> None:
        try:
            while not stop.is_set():
                call()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(busy[name],), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            time.sleep(float(example.rng.random()) * 0.03)
            calls = _child_calls(example, table, n)
            child = Child(lambda calls=calls: [call() for call in calls], in_order=example.happens(0.5))
            child.wait(SECONDS, "a forked child")
    finally:
        stop.set()
        for thread in threads:
            thread.join(SECONDS)
    require(not any(thread.is_alive() for thread in threads), "a thread of the parent hangs behind a fork")
    if raised:
        raise raised[0]
    _finds(table, n)
    table.check()


def _busy_calls(table: Any, keys: Any, values: Any, new: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    def come_and_go() -> None:
        table.insert(new, values)
        table.erase(new)

    return {
        "find": lambda: table.find(keys),
        "contains": lambda: table.contains(keys),
        "assign": lambda: table.assign(keys, values),
        "insert": lambda: table.insert(keys, values),
        "upsert": lambda: table.upsert(keys, values, "max"),
        "insert and erase": come_and_go,
        "keys": table.keys,
        "copy": table.copy,
        "check": table.check,
        "another table": lambda: HashMap.from_arrays(values, values, device="cpu"),
    }


def _child_calls(example: Example, table: Any, n: int) -> list[Callable[[], Any]]:
    """What a child does, in this order. Each call may be refused."""

    def refusable(call: Callable[[], Any]) -> Callable[[], Any]:
        def made() -> None:
            with suppress(WarphashError):
                call()

        return made

    calls = {
        "find": lambda: _finds(table, n),
        "insert": lambda: table.insert(_keys(table, np.array([3 * n])), np.array([1], table.value_dtype)),
        "erase": lambda: table.erase(_keys(table, np.array([3 * n]))),
        "copy": lambda: _finds(table.copy(), n),
        "check": table.check,
        "length": lambda: len(table),
        "new table": _new_table,
        "new large table": lambda: _new_table(100_000),
        "close": table.close,
        "thread": _in_thread(lambda: _finds(table, n)),
    }
    names = [example.choose(sorted(calls)) for _ in range(example.between(1, 4))]
    example.note(f"a child calls {names}")
    return [refusable(calls[name]) for name in names]


def _in_thread(call: Callable[[], Any]) -> Callable[[], None]:
    def made() -> None:
        raised = list[BaseException]()

        def body() -> None:
            try:
                call()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]

    return made


def _finds(table: Any, n: int) -> None:
    """Find the stable keys."""
    numbers = np.arange(0, n, max(1, n // 3000))
    values, found = table.find(_keys(table, numbers))
    require(np.asarray(found).all(), "a forked child misses keys", f"{np.sum(~np.asarray(found))} of {len(numbers)}")
    require((np.asarray(values) == numbers).all(), "a forked child finds wrong values")


def _new_table(n: int = 100) -> None:
    numbers = np.arange(n)
    made: Any = HashMap.from_arrays(numbers, numbers, device="cpu")
    require(made.contains(numbers).all(), "a table that a forked child made misses keys")
