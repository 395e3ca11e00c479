"""A state machine against the dict: any order of verbs, on tables so small that each run grows, evicts and rebuilds."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import warphash
from support.cases import ONE_OF_EACH_FAMILY, VARIANTS, design_names
from support.model import Model
from support.types import ANY_LENGTH, as_bytes
from warphash.storage.strings import held_strings

# A few keys that meet often, and the patterns that slots use themselves.
KEYS = st.one_of(st.integers(0, 60), st.integers(2**32 - 5, 2**32 - 1))
BATCHES = st.lists(KEYS, max_size=60)
VALUES = st.integers(0, 2**32 - 1)


class TableMachine(RuleBasedStateMachine):
    """Each rule is a verb; the model says what it may answer. Subclasses name the design."""

    design: str
    parameters: dict[str, Any]
    value: str

    @initialize(capacity=st.integers(1, 40), seed=st.integers(0, 2**31))
    def make(self, capacity: int, seed: int) -> None:
        options = {"design": self.design, "device": "cpu", "seed": seed, **self.parameters}
        self.table = warphash.HashMap(np.uint32, self.value, capacity=capacity, **options)
        self.model = Model()

    def arrays(self, keys: list[int], first_value: int) -> tuple[Any, Any]:
        numbers = (first_value + np.arange(len(keys), dtype=np.uint64)).astype(np.uint32)
        texts = [f"{'x' * (number % 50)}{number % 300}" for number in numbers.tolist()]
        return np.array(keys, np.uint32), np.array(texts, ANY_LENGTH) if self.value == "str" else numbers

    @rule(keys=BATCHES, value=VALUES)
    def insert(self, keys: list[int], value: int) -> None:
        batch, values = self.arrays(keys, value)
        self.model.inserted(batch, values, self.table.insert(batch, values))

    @rule(keys=BATCHES, value=VALUES)
    def assign(self, keys: list[int], value: int) -> None:
        batch, values = self.arrays(keys, value)
        self.model.assigned(batch, values, self.table.assign(batch, values), self.table)

    @rule(keys=BATCHES, value=VALUES, op=st.sampled_from(["add", "min", "max", "or", "and", "xor"]))
    def upsert(self, keys: list[int], value: int, op: str) -> None:
        batch, values = self.arrays(keys, value)
        op = op if self.value == "uint32" else "first" if op == "add" else "last"
        self.model.upserted(batch, values, op, self.table.upsert(batch, values, op), self.table)

    @rule(keys=BATCHES, value=VALUES)
    def find_or_insert(self, keys: list[int], value: int) -> None:
        batch, values = self.arrays(keys, value)
        held, inserted = self.table.find_or_insert(batch, values)
        self.model.inserted(batch, values, inserted)
        assert as_bytes(held) == [self.model.pairs[key.tobytes()] for key in batch]

    @rule(keys=BATCHES)
    def erase(self, keys: list[int]) -> None:
        batch, _ = self.arrays(keys, 0)
        self.model.erased(batch, self.table.erase(batch))

    @rule(keys=BATCHES)
    def find(self, keys: list[int]) -> None:
        self.model.finds(self.table, self.arrays(keys, 0)[0])

    @rule()
    def clear(self) -> None:
        self.table.clear()
        self.model = Model()

    @rule()
    def shrink(self) -> None:
        self.table.shrink()

    @rule(n=st.integers(0, 300))
    def reserve(self, n: int) -> None:
        self.table.reserve(n)
        assert self.table.capacity >= n

    @rule()
    def go_on_with_a_copy(self) -> None:
        self.table = self.table.copy()

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "model"):
            self.model.agrees(self.table)


SMALL = [
    pytest.param(
        design,
        parameters,
        marks=[pytest.mark.slow] * (bool(parameters) or design not in (*ONE_OF_EACH_FAMILY, "tiered")),
        id=f"{design}-{parameters}",
    )
    for design in design_names()
    for parameters in VARIANTS.get(design, [{}])[:2]
]
"""The default of one design of each family for every day."""


@pytest.mark.parametrize("value", ["uint32", "str"])
@pytest.mark.parametrize(("design", "parameters"), SMALL)
def test_any_order_of_verbs(
    design: str, parameters: dict[str, Any], value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_strings, "FEWEST_TO_COLLECT", 30)
    machine: Any = type("Machine", (TableMachine,), {"design": design, "parameters": parameters, "value": value})
    case = machine.TestCase
    case.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
    case("runTest").runTest()
