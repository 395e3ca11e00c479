"""The cases that the conformance suite is crossed with: engine, design and its parameters, key type, value type.

The CPU takes every variant of every design with the types that sit in a slot, and every design with every type. The
emulated engine runs each kernel on fibers, one thread at a time, so it takes fewer of both; a GPU takes what the CPU
takes. A new design in the registry is crossed with no line here; a line in `VARIANTS` adds its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import warphash
from support.types import KEY_TYPES, VALUE_TYPES, Array, distinct_keys, some_values
from warphash.designs import registry

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "cuckoo": [{}, {"hash": "universal"}],
    "bucketed_cuckoo": [
        {},
        {"slots_per_bucket": 8},
        {"slots_per_bucket": 32, "early_exit": False},
        {"placement": "least_loaded", "hashes": 2},
        {"hash": "universal"},
    ],
    "power_of_two": [{}, {"slots_per_bucket": 8}, {"slots_per_bucket": 32}],
    "iceberg": [{}, {"slots_per_bucket": 8}, {"slots_per_bucket": 32, "threshold": 0.4, "early_exit": False}],
}
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
EMULATED_TYPES = [("u4", "u4"), ("u8", "u8"), ("u4", "none")]
EMULATED_MIXED = [("u8", "i4"), ("rows", "f4"), ("S5", "none")]
N_KEYS = {"cpu": 2000, "emulated": 120, "cuda": 20_000}


@dataclass(frozen=True)
class Case:
    """One place to run and one kind of table."""

    engine: str
    design: str
    key: str
    value: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.parameters.items()]
        return "-".join([self.engine, self.design, *words, f"{self.key}:{self.value}"])

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
        """Keys of a test: few where each costs much."""
        return N_KEYS[self.engine]

    def keys(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` distinct keys; at most 120 of one-byte ones."""
        return distinct_keys(self.key_dtype, min(n, 120) if self.key == "u1" else n, rng)

    def values(self, n: int, rng: np.random.Generator) -> Array | None:
        return None if self.is_set else some_values(self.value_dtype, n, rng)

    def table(self, **options: Any) -> Any:
        """An empty table of this case; ``options`` as `warphash.HashMap` takes them."""
        options = {"device": self.engine, "design": self.design, "seed": 7, **self.parameters, **options}
        if self.is_set:
            return warphash.HashSet(self.key_dtype, **options)
        return warphash.HashMap(self.key_dtype, self.value_dtype, **options)

    def from_arrays(self, keys: Array, values: Array | None, **options: Any) -> Any:
        """A table built in one pass."""
        options = {"device": self.engine, "design": self.design, "seed": 7, **self.parameters, **options}
        if self.is_set:
            return warphash.HashSet.from_arrays(keys, **options)
        return warphash.HashMap.from_arrays(keys, values, **options)

    def load(self, path: Any) -> Any:
        kind = warphash.HashSet if self.is_set else warphash.HashMap
        return kind.load(path, device=self.engine)

    def insert(self, table: Any, keys: Any, values: Any = None, **options: Any) -> Any:
        return table.insert(keys, **options) if self.is_set else table.insert(keys, values, **options)


def design_names() -> list[str]:
    """The registered designs; "auto" chooses one of them."""
    return [name for name in registry.names() if name != "auto"]


def cases(engine: str) -> list[Case]:
    """Every case of one engine."""
    few = engine == "emulated"
    crossed = []
    for design in design_names():
        for number, parameters in enumerate(VARIANTS.get(design, [{}])):
            types = EMULATED_TYPES if few else IN_SLOT
            if number == 0:
                types = types + (EMULATED_MIXED if few else MIXED)
            elif few:
                types = types[:1]
            crossed += [Case(engine, design, key, value, parameters) for key, value in types]
    return crossed
