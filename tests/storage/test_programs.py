"""`programs` names every set of kernels that a table launches: what ``warphash compile`` leaves out would come late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names, only
from support.engines import one_of_each
from support.inside import parts_of
from warphash import HashMap, Operation
from warphash.designs import registry
from warphash.runtime.devices import engine_for
from warphash.runtime.engine import KernelSpec
from warphash.storage.bounded.bound import Bound
from warphash.storage.make import programs

TYPES = [("u8", "u8"), ("V24", "V40")]


def use(table: Any, key: str) -> None:
    """Call verbs that lead to all kernels of a table. Not `check`, whose proof is a table of another design."""
    words = np.arange(1, 401, dtype="u8")
    keys, values = (
        words if dtype == "u8" else np.repeat(words, int(dtype[1:]) // 8).view(dtype) for dtype in (key, key)
    )
    values = values if key == "u8" else np.repeat(words, 5).view("V40")
    for part in np.array_split(np.arange(400), 3):
        table.insert(keys[part], values[part], **({"scores": part.astype("f8")} if parts_of(table).front.score else {}))
    table.assign(keys[:9], values[:9], **({"scores": words[:9].astype("f8")} if parts_of(table).front.score else {}))
    table.find(keys)
    table.erase(keys[:300])
    table.shrink()
    table.copy().to_arrays()
    design = registry.get(table.design)
    mixes = "execute" in design.capabilities and (key == "u8" or design.layout.in_place)
    if mixes and parts_of(table).facts.bound is None:
        table.execute(np.full(9, Operation.FIND, "u1"), keys[:9], values[:9])


def is_possible(design: str, evict: str | None) -> bool:
    """Ranks beside the pairs need pairs on the device."""
    return design != "tiered" or evict != "score"


@pytest.mark.slow
@only(is_possible)
@pytest.mark.parametrize("device", one_of_each("emulated"))
@pytest.mark.parametrize("evict", [None, "lfu", "score"])
@pytest.mark.parametrize(("key", "value"), TYPES)
@pytest.mark.parametrize(
    ("design", "parameters"), [*((name, {}) for name in design_names()), ("dynamic_cuckoo", {"coordination": "voter"})]
)
def test_no_kernel_comes_late(
    monkeypatch: pytest.MonkeyPatch,
    design: str,
    parameters: dict[str, str],
    key: str,
    value: str,
    evict: str | None,
    device: str,
) -> None:
    engine: Any = engine_for(device)
    asked: set[KernelSpec] = set()
    give = engine.program

    def noted(spec: KernelSpec) -> Any:
        asked.add(spec)
        return give(spec)

    monkeypatch.setattr(engine, "program", noted)
    bound = {} if evict is None else {"max_size": 300, "evict": evict}
    table = HashMap(key, value, design=design, device=device, capacity=40, seed=1, **bound, **parameters)
    use(table, key)
    made = registry.get(design)
    wanted = programs(
        made,
        made.resolve(parameters),
        key_bytes=table.key_dtype.itemsize,
        value_bytes=table.value_dtype.itemsize,
        family="mixer",
        bound=Bound(300, evict) if evict else None,
    )
    late = asked - set(wanted)
    assert not late, f"{[spec.design for spec in late]} would be compiled at the first use"
