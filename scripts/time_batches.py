"""Time large batches: builds, inserts, finds, erases, sums, growth.

A figure is the rate of the median of several calls, in billion keys a second, by events of a GPU; the rate of the
fastest call stands in brackets. Each result is compared with right answers that no table has computed: a value is a
bijection of its key, so keys that are found tell their values.

Usage: python scripts/time_batches.py [--types uint32 uint32] [--n 50000000] [--rows build find]
       python scripts/time_batches.py --types uint64 uint64 --n 100000000 --rows huge --base 3000000000
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from warphash import HashMap
from warphash.lab.bench.limits import LINE_BYTES
from warphash.lab.bench.runner import Lab
from warphash.lab.data.workloads import ranks, scrambled

PIECE = 1 << 28
"""Most keys of a call that fills a huge table."""

DISTINCT_SUMMED = 1_000_000
"""Keys whose values are summed, where they follow Zipf's law."""

FRACTION = 64
"""A small batch has this part of the keys of its table."""


class Row(NamedTuple):
    """What is timed.

    Attributes
    ----------
    keys
        Of a call.
    before, run
        What is called before each timed call, and the call.
    wrong
        Wrong answers of the last call, and wrong pairs of its table.
    calls
        That a run makes.
    ceiling_per_s
        Lookups per second that the memory allows where each key goes to its line by itself (`lab.bench.ceilings`); 0
        to say nothing.
    """

    name: str
    keys: int
    before: Callable[[], Any]
    run: Callable[[], Any]
    wrong: Callable[[], int]
    calls: int = 1
    ceiling_per_s: float = 0


class Batches:
    """The batches of one pair of types, and their rows.

    Parameters
    ----------
    n
        Keys of a batch.
    base
        Keys of a huge table.
    """

    def __init__(self, lab: Lab, design: Any, types: list[str], n: int, base: int) -> None:
        self._lab, self._design, self._types, self.n, self._base = lab, design, types, n, base
        self._made: list[Any] = []
        self._got: list[Any] = []

    # ---- keys and tables
    def keys(self, first: int, last: int) -> Any:
        """Distinct keys in random order: the same for the same numbers."""
        return scrambled(self._lab.arrays.arange(first, last, dtype=self._types[0]))

    def values(self, keys: Any) -> Any:
        """The value of each key."""
        return scrambled(keys.copy()).astype(self._types[1])

    def pairs(self, first: int, last: int) -> tuple[Any, Any]:
        keys = self.keys(first, last)
        return keys, self.values(keys)

    def table(self, capacity: int) -> Any:
        return HashMap(*self._types, design=self._design, device=self._lab.device, capacity=capacity, seed=1)

    def build(self, first: int, last: int, **options: Any) -> Callable[[], None]:
        """What makes a table of new pairs, in place of the last one."""
        keys, values = self.pairs(first, last)
        options = {"design": self._design, "device": self._lab.device, "capacity": len(keys), "seed": 1, **options}

        def build() -> None:
            self._made.clear()
            self._made.append(HashMap.from_arrays(keys, values, **options))

        return build

    def empty(self, capacity: int) -> Callable[[], None]:
        def make() -> None:
            self._made.clear()
            self._made.append(self.table(capacity))

        return make

    def ask(self, verb: str, *arguments: Any) -> Callable[[], None]:
        """A call of a verb of the table; its answer is kept."""

        def ask() -> None:
            self._got[:] = [getattr(self._made[0], verb)(*arguments)]

        return ask

    # ---- right answers
    def lost(self, keys: Any, size: int) -> int:
        """How many of these keys are absent or have wrong values, and by how many pairs the size is wrong."""
        table, lost = self._made[0], abs(len(self._made[0]) - size)
        for at in range(0, len(keys), PIECE):
            part = keys[at : at + PIECE]
            values, found = table.find(part)
            lost += int((~found).sum()) + int((values != self.values(part)).sum())
        return lost

    def unlike(self, flags: Any, right: Any) -> int:
        return int((flags != right).sum())

    # ---- rows
    def rows_build(self) -> Iterator[Row]:
        keys = self.keys(0, self.n)
        for what, unique in (("keys may repeat", False), ("keys differ", True)):
            build = self.build(0, self.n, assume_unique=unique)
            yield Row(f"build, {what}", self.n, self._made.clear, build, lambda: self.lost(keys, self.n))

    def rows_insert(self) -> Iterator[Row]:
        keys, values = self.pairs(0, self.n)
        yield Row(
            "insert into an empty table",
            self.n,
            self.empty(self.n),
            self.ask("insert", keys, values),
            lambda: self.lost(keys, self.n) + self.unlike(self._got[0], True),
        )
        most = self.n * 9 // 10
        yield Row(
            "insert the last tenth",
            self.n - most,
            self.build(0, most, capacity=self.n),
            self.ask("insert", keys[most:], values[most:]),
            lambda: self.lost(keys, self.n) + self.unlike(self._got[0], True),
        )

    def rows_find(self) -> Iterator[Row]:
        self.build(0, self.n)()
        half = self.n // 2
        keys = self.keys(half, half + self.n)
        order = self._lab.argsort(scrambled(keys.copy()))
        asked = {"all": self.keys(0, self.n), "half": keys[order], "none": self.keys(self.n, 2 * self.n)}
        there = {"all": True, "half": order < self.n - half, "none": False}
        for what, keys in asked.items():
            yield self._find(f"find {what}", keys, there[what])
        few, key_bytes = self.n // FRACTION, np.dtype(self._types[0]).itemsize
        ceiling_per_s = self._lab.memory.lookups_per_s(LINE_BYTES, self._made[0].nbytes, key_bytes)
        for what in ("all", "none"):
            row = self._find(f"find {what}, 1/{FRACTION} of the keys", asked[what][-few:], there[what])
            yield row._replace(ceiling_per_s=ceiling_per_s)

    def _find(self, name: str, keys: Any, there: Any) -> Row:
        calls = 1 if self._lab.arrays is np else 8  # the host launches a call while the call before still runs

        def run() -> None:
            self._got[:] = [self._made[0].find(keys) for _ in range(calls)][-1]

        def wrong() -> int:
            values, found = self._got
            return self.unlike(found, there) + int((found & (values != self.values(keys))).sum())

        return Row(name, len(keys), self._got.clear, run, wrong, calls)

    def rows_erase(self) -> Iterator[Row]:
        build, keys = self.build(0, self.n), self.keys(0, self.n)
        for what, first in (("all", 0), ("half", self.n // 2)):
            erased = self.keys(first, first + self.n)
            there = self._lab.arrays.arange(self.n) < self.n - first
            yield Row(
                f"erase {what}",
                self.n,
                build,
                self.ask("erase", erased),
                lambda first=first, there=there: self.lost(keys[:first], first) + self.unlike(self._got[0], there),
            )

    def rows_sum(self) -> Iterator[Row]:
        arrays, distinct = self._lab.arrays, min(DISTINCT_SUMMED, self.n)
        uniform = arrays.asarray(np.random.default_rng(1).random(self.n))
        of_zipf = ranks(uniform, 1.0, distinct, arrays).astype(np.int64)
        numbers = {
            "Zipf 1.0": (of_zipf, distinct),
            "all equal": (arrays.zeros(self.n, np.int64), distinct),
            "all different": (arrays.arange(self.n), self.n),
        }
        added = arrays.arange(self.n).astype(self._types[1]) & np.dtype(self._types[1]).type(255)
        for what, (number, capacity) in numbers.items():
            known = self.keys(0, capacity)
            keys = known[number]

            def wrong(number: Any = number, capacity: int = capacity, known: Any = known) -> int:
                sums = arrays.bincount(number, weights=added, minlength=capacity).astype(np.uint64)  # of whole floats
                values, found = self._made[0].find(known)
                there = arrays.bincount(number, minlength=capacity) > 0
                return self.unlike(found, there) + int((there & (values != sums.astype(self._types[1]))).sum())

            yield Row(f"sum, {what}", self.n, self.empty(capacity), self.ask("upsert", keys, added, "add"), wrong)

    def rows_grow(self) -> Iterator[Row]:
        keys, values = self.pairs(0, self.n)
        step = max(1, self.n // 50)

        def grow() -> None:
            for at in range(0, self.n, step):
                self._made[0].insert(keys[at : at + step], values[at : at + step])

        yield Row("grow by fiftieths", self.n, self.empty(1), grow, lambda: self.lost(keys, self.n))
        yield Row(
            "double the table",
            self.n,
            self.build(0, self.n),
            self.ask("reserve", 2 * self.n),
            lambda: self.lost(keys, self.n),
        )

    def rows_huge(self) -> Iterator[Row]:
        """Of a table with ``base`` keys and room for half as many more."""
        self.empty(self._base * 3 // 2)()
        table, at = self._made[0], 0
        for at in range(0, self._base, PIECE):
            table.insert(*self.pairs(at, min(at + PIECE, self._base)))
        at = self._base
        pairs: list[Any] = []

        def new_pairs() -> None:
            nonlocal at
            pairs[:] = self.pairs(at, at + self.n)
            at += self.n

        def insert() -> None:
            self._got[:] = [table.insert(*pairs)]

        name = f"a table of {table.nbytes / 1e9:.0f} GB: "
        yield Row(
            f"{name}insert",
            self.n,
            new_pairs,
            insert,
            lambda: self.lost(pairs[0], at) + self.unlike(self._got[0], True),
        )
        first = self.keys(0, self.n)
        yield self._find(f"{name}find all", first, True)
        yield self._find(f"{name}find none", self.keys(self._base * 2, self._base * 2 + self.n), False)


ROWS = ("build", "insert", "find", "erase", "sum", "grow", "huge")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time large batches.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--design", default="quotient_cuckoo")
    parser.add_argument("--types", nargs=2, default=["uint32", "uint32"], help="unsigned, of keys and of values")
    parser.add_argument("--n", type=int, default=50_000_000, help="keys of a batch")
    parser.add_argument("--base", type=int, default=0, help="keys of a huge table")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS[:-1])
    parser.add_argument("--repetitions", type=int, default=9)
    given = parser.parse_args()
    lab = Lab(given.device, given.repetitions)
    batches = Batches(lab, given.design, given.types, given.n, given.base)
    print(
        f"{lab.machine}; {given.design}, {' + '.join(given.types)}, {given.n:,} keys; G/s of medians (of the fastest)"
    )
    for name in given.rows:
        for row in getattr(batches, f"rows_{name}")():
            seconds = [run_s / row.calls for run_s in lab.timed(row.run, row.before)]
            wrong = row.wrong()
            rate, best = row.keys / statistics.median(seconds) / 1e9, row.keys / min(seconds) / 1e9
            share = f", {rate * 1e9 / row.ceiling_per_s:.2f} of the ceiling of lookups" if row.ceiling_per_s else ""
            print(f"{row.name}: {rate:.2f} ({best:.2f}){share} of {len(seconds)}, {wrong} wrong", flush=True)
            if wrong:
                raise SystemExit(f"{row.name}: a rate with {wrong:,} wrong answers is not a rate")


if __name__ == "__main__":
    main()
