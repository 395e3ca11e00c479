"""The cases that the conformance suite is crossed with: engine, design and its parameters, key type, value type.

The CPU runs every variant of every design with the types that fit in a slot, and every design with every type. A GPU
runs the same cases. The emulated engine runs each kernel on fibers, one thread at a time, so it gets fewer variants and
types. A new design in the registry needs no line here. A line in `VARIANTS` adds parameters of a design.

Most cases are `Case.rare` and marked ``slow``. `DAILY` has the types that may run every day for one design of each
family, and `FEWER` the types for the other designs. Which of these cases do run, `support.daily` chooses for each file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import warphash
from support.types import KEY_TYPES, VALUE_TYPES, Array, distinct_keys, some_values
from warphash.designs import registry
from warphash.designs.base import GROUP_VERBS

UNREACHED = {"max_size": 1 << 17}
"""A bound that no test reaches: a bounded table from which nothing leaves is as one without a bound."""

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "cuckoo": [{}, {"hash": "universal"}],
    "bucketed_cuckoo": [
        {},
        {"slots_per_bucket": 8},
        {"slots_per_bucket": 32, "early_exit": False},
        {"placement": "least_loaded", "hashes": 2},
        {"hash": "universal"},
        UNREACHED,
        {**UNREACHED, "evict": "lfu"},
    ],
    "power_of_two": [{}, {"slots_per_bucket": 8}, {"slots_per_bucket": 32}, {"hashes": 4}],
    "iceberg": [{}, {"slots_per_bucket": 8}, {"slots_per_bucket": 32, "threshold": 0.4, "early_exit": False}],
    "slab": [{}, {"allocator": "slab_light"}, {"buckets": 7}, {**UNREACHED, "evict": "fifo"}],
    "dynamic_cuckoo": [
        {},
        {"subtables": 2, "routing": "equal_loads"},
        {"coordination": "voter"},
        {"subtables": 8, "coordination": "spin", "routing": "theorem"},
        {"hash": "universal"},
        UNREACHED,
    ],
    "linear_probing": [
        {},
        {"slots_per_bucket": 32},
        {"slots_per_bucket": 1, "probe_limit": 512},
        {"hash": "universal"},
    ],
    "stadium": [
        {},
        {"lanes": "clstash"},
        {"ticket_bits": 1},
        {"ticket_bits": 4},
        {"ticket_bits": 2, "functions": "family"},
        {"functions": "family", "hash": "universal"},
        {**UNREACHED, "evict": "random"},
        UNREACHED,
    ],
    "quotient_cuckoo": [{}, {"hash": "universal"}],
    "two_level_cuckoo": [
        {},
        {"range_slots": 64},
        {"hashes": 3, "range_slots": 256},
        {"hashes": 4, "rounds": 8},
        {"hashes": 1, "sizing": "squared", "range_slots": 256},
        {"hash": "universal"},
    ],
}
MIXED_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "slab": [{}, {"allocator": "slab_light"}, {"buckets": 7, "rebucket": False}],
    "lock_free_chaining": [{}, {"buckets": 97, "rebucket": False}],
    "stadium": [{}, {"ticket_bits": 1, "in_flight": "wait"}, {"memory": "host"}],
}
"""Parameters of designs that do mixed batches. Some make long lists, in a table with fewer slots than keys, which not
all tests that use `VARIANTS` allow."""
IN_SLOT = [("u4", "u4"), ("u8", "u8"), ("u4", "none"), ("u8", "none")]
MIXED = [
    ("i4", "f4"),
    ("i8", "f8"),
    ("u4", "i8"),
    ("u8", "i4"),
    ("datetime", "u4"),
    ("u1", "u1"),
    ("i2", "i2"),
    ("S5", "u4"),
    ("S40", "S7"),
    ("V12", "none"),
    ("structured", "i8"),
    ("rows", "rows"),
    ("u4", "rows"),
]
STRING_VALUES = [("u4", "str"), ("rows", "str")]
"""Types with values of any length, which live on the CPU."""
MIXED_TYPES = [*IN_SLOT, ("i4", "f4"), ("u4", "i8"), ("u8", "i4"), ("i2", "none"), ("S5", "u4")]
"""Types of mixed batches. Their keys and values must fit in the slot, and may differ in width."""
WIDE_MIXED_TYPES = [
    *(("rows", "rows"), ("V12", "none"), ("u4", "rows"), ("u8", "V88"), ("S40", "S7"), ("V12", "V48"), ("V128", "u4")),
]
"""Types of mixed batches on designs that keep them in place. Values are copied by words of 4, 8 and 16 bytes."""
MULTI_TYPES = [("u4", "u4"), ("u8", "u8"), ("u4", "f8"), ("i8", "i4"), ("i2", "i4"), ("S5", "u4"), ("datetime", "u1")]
EMULATED_TYPES = [("u4", "u4"), ("u8", "u8"), ("u4", "none")]
EMULATED_MIXED = [("u8", "i4"), ("rows", "f4"), ("S5", "none")]
DAILY = {
    "emulated": {("u4", "u4"), ("u8", "u8"), ("u4", "none"), ("rows", "rows")},
    "cpu": {
        *(("u4", "u4"), ("u8", "u8"), ("u4", "none"), ("u8", "none")),
        *(("u1", "u1"), ("S5", "u4"), ("V12", "none"), ("u4", "rows"), ("rows", "rows"), ("u4", "str")),
    },
}
"""Types that run every day, one of each kind: words of 4 and 8 bytes, keys narrower than a word, rows, and sets."""
ONE_OF_EACH_FAMILY = ("bucketed_cuckoo", "slab", "dynamic_cuckoo", "stadium", "two_level_cuckoo", "quotient_cuckoo")
FEWER = {
    "emulated": {("u4", "u4"), ("u4", "none")},
    "cpu": {("u4", "u4"), ("u8", "u8"), ("u4", "none"), ("rows", "rows")},
}
"""Types that run every day for the other designs of a family, which have the same kernels as the first one."""
N_KEYS = {"cpu": 2000, "emulated": 120, "cuda": 20_000}


@dataclass(frozen=True)
class Case:
    """One case: an engine and one kind of table.

    Attributes
    ----------
    variant
        Index of the parameters in the design's list of variants. Variant 0 has the default parameters.
    """

    engine: str
    design: str
    key: str
    value: str
    parameters: dict[str, Any] = field(default_factory=dict)
    variant: int = 0

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.parameters.items()]
        return "-".join([self.engine, self.design, *words, f"{self.key}:{self.value}"])

    @property
    def rare(self) -> bool:
        """Whether the case adds little to other cases, by its types or by its parameters."""
        if self.variant:
            late = self.engine == "cpu" and not self._is_in_extension
            return self.engine == "emulated" or late or (self.key, self.value) != ("u4", "u4")
        daily = DAILY if self.design in ONE_OF_EACH_FAMILY else FEWER
        return (self.key, self.value) not in daily.get(self.engine, daily["cpu"])

    @property
    def _is_in_extension(self) -> bool:
        """Whether the CPU engine has tables with such buckets ahead of time. It takes seconds to compile others."""
        size = self.parameters.get("slots_per_bucket")
        return size is None or any(size == slots.slots_per_bucket for slots in registry.get(self.design).compiled())

    @property
    def axes(self) -> dict[str, str]:
        """What cases differ in. The place is there so that each test meets each design on each engine."""
        own = {
            "place": f"{self.engine} {self.design}",
            "parameters": f"{self.design} {self.parameters}",
            "key": self.key,
            "value": self.value,
        }
        return {"engine": self.engine, "design": self.design, **{f"case.{name}": text for name, text in own.items()}}

    @property
    def is_set(self) -> bool:
        return self.value == "none"

    @property
    def key_dtype(self) -> np.dtype[Any]:
        return KEY_TYPES[self.key]

    @property
    def value_dtype(self) -> np.dtype[Any]:
        return VALUE_TYPES[self.value]

    @property
    def n(self) -> int:
        """Number of keys of a test. A slow engine gets few keys."""
        return N_KEYS[self.engine]

    def keys(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` distinct keys, or at most 120 if keys have one byte."""
        return distinct_keys(self.key_dtype, min(n, 120) if self.key == "u1" else n, rng)

    def values(self, n: int, rng: np.random.Generator) -> Array | None:
        return None if self.is_set else some_values(self.value_dtype, n, rng)

    def table(self, **options: Any) -> Any:
        """An empty table of this case. ``options`` go to `warphash.HashMap`."""
        options = {"device": self.engine, "design": self.design, "seed": 7, **self.parameters, **options}
        if self.is_set:
            return warphash.HashSet(self.key_dtype, **options)
        return warphash.HashMap(self.key_dtype, self.value_dtype, **options)

    def from_arrays(self, keys: Array, values: Array | None, **options: Any) -> Any:
        """Build a table of this case in one pass."""
        options = {"device": self.engine, "design": self.design, "seed": 7, **self.parameters, **options}
        if self.is_set:
            return warphash.HashSet.from_arrays(keys, **options)
        return warphash.HashMap.from_arrays(keys, values, **options)

    def load(self, path: Any) -> Any:
        kind = warphash.HashSet if self.is_set else warphash.HashMap
        return kind.load(path, device=self.engine)

    def insert(self, table: Any, keys: Any, values: Any = None, **options: Any) -> Any:
        return table.insert(keys, **options) if self.is_set else table.insert(keys, values, **options)


class MultiCase(Case):
    """One case: an engine and one kind of `MultiMap`."""

    def __str__(self) -> str:
        return f"multi-{super().__str__()}"

    def table(self, **options: Any) -> Any:
        options = {"device": self.engine, "design": self.design, "seed": 7, **self.parameters, **options}
        return warphash.MultiMap(self.key_dtype, self.value_dtype, **options)

    def from_arrays(self, keys: Array, values: Array | None, **options: Any) -> Any:
        options = {"device": self.engine, "design": self.design, "seed": 7, **self.parameters, **options}
        return warphash.MultiMap.from_arrays(keys, values, **options)

    def load(self, path: Any) -> Any:
        return warphash.MultiMap.load(path, device=self.engine)


def only(wanted: Callable[..., bool]) -> pytest.MarkDecorator:
    """Collect a test only for parameters of which ``wanted`` is true. ``wanted`` has the names of some parameters."""
    return pytest.mark.only.with_args(wanted)


def rare(*values: Any) -> list[Any]:
    """Values of a parameter that only the slow tests take."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def is_map(case: Case) -> bool:
    """Whether the tables of a case have values."""
    return not case.is_set


def design_names() -> list[str]:
    """The registered designs, without "auto", which chooses one of them."""
    return [name for name in registry.names() if name != "auto"]


def list_designs() -> list[str]:
    """The designs whose buckets are lists."""
    return [name for name in design_names() if registry.get(name).layout.keeps_duplicates]


def group_designs() -> list[str]:
    """The designs that a `MultiMap` in groups is tested with: one of each family."""
    return [name for name in ONE_OF_EACH_FAMILY if not registry.get(name).layout.keeps_duplicates]


def multi_designs() -> list[str]:
    """The designs that a `MultiMap` is tested with."""
    return [*list_designs(), *group_designs()]


def multi_verbs(design: str) -> frozenset[str]:
    """The verbs of a `MultiMap` of a design."""
    return registry.get(design).capabilities if design in list_designs() else GROUP_VERBS


def mixed_designs() -> list[str]:
    """The designs that do mixed batches."""
    return [name for name in design_names() if "execute" in registry.get(name).capabilities]


def wide_mixed_designs() -> list[str]:
    """The designs whose mixed batches take keys and values wider than a word."""
    return [name for name in mixed_designs() if registry.get(name).layout.in_place]


def cases(engine: str) -> list[Case]:
    """Every case of one engine."""
    few = engine == "emulated"
    crossed = []
    for design in design_names():
        for number, parameters in enumerate(VARIANTS.get(design, [{}])):
            types = EMULATED_TYPES if few else IN_SLOT
            if number == 0:
                types = types + (EMULATED_MIXED if few else MIXED) + (STRING_VALUES if engine == "cpu" else [])
            elif few:
                types = types[:1]
            crossed += [Case(engine, design, key, value, parameters, number) for key, value in types]
    return crossed


def mixed_cases(engine: str) -> list[Case]:
    """Every case of one engine for mixed batches."""
    few, few_wide = [("u4", "u4"), ("u8", "u8"), ("u4", "none"), ("u8", "i4")], [("rows", "rows"), ("V12", "none")]
    return [
        *_crossed(Case, mixed_designs(), engine, MIXED_TYPES, few),
        *_crossed(Case, wide_mixed_designs(), engine, WIDE_MIXED_TYPES, few_wide),
    ]


def multi_cases(engine: str) -> list[Case]:
    """Every case of one engine for `MultiMap`."""
    return _crossed(MultiCase, multi_designs(), engine, MULTI_TYPES, [("u4", "u4")])


def list_cases(engine: str) -> list[Case]:
    """Every case of one engine for a `MultiMap` of lists."""
    return [case for case in multi_cases(engine) if case.design in list_designs()]


def _crossed(
    kind: type[Case], designs: list[str], engine: str, types: list[tuple[str, str]], emulated: list[tuple[str, str]]
) -> list[Case]:
    crossed = []
    for design in designs:
        for number, parameters in enumerate(MIXED_VARIANTS.get(design, [{}])):
            few = emulated if engine == "emulated" else types
            few = few[:2] if number else few
            crossed += [kind(engine, design, key, value, parameters, number) for key, value in few]
    return crossed
