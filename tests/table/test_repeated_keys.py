"""What `from_arrays` makes of keys that repeat: a table that is sized for its keys, and not for its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.cases import design_names
from warphash import HashMap, HashSet

ROWS, KEYS = 1 << 16, 500
REPEATED = np.random.default_rng(5).permutation(np.arange(ROWS) % KEYS)


def made(table: Any, keys: Any, **options: Any) -> Any:
    columns = (keys,) if table is HashSet else (keys, np.asarray(keys).astype("i8") + 1)
    return table.from_arrays(*columns, device="cpu", seed=3, **options)


@pytest.mark.parametrize("table", [HashMap, HashSet])
@pytest.mark.parametrize("design", [each for each in design_names() if each != "tiered"])  # has two sizes
@pytest.mark.parametrize("kind", ["i8", "S8", "U3"])
def test_a_table_of_repeated_keys_is_sized_for_the_keys(table: Any, design: str, kind: str) -> None:
    keys = REPEATED.astype(kind)
    small = made(table, keys, design=design)
    assert KEYS <= small.capacity < 2 * KEYS
    small.check()
    assert sorted(np.asarray(small.keys()).astype("i8").tolist()) == list(range(KEYS))
    if table is HashMap:
        assert (small[keys] == REPEATED + 1).all()


@pytest.mark.parametrize(
    "options",
    [{"capacity": ROWS}, {"on_full": "raise"}, {"load_bounds": (0.001, 0.8)}],
    ids=lambda options: next(iter(options)),
)
def test_a_size_that_the_caller_set_stays(options: dict[str, Any]) -> None:
    assert made(HashMap, REPEATED, design="linear_probing", **options).capacity >= ROWS


def test_keys_that_repeat_a_few_times_keep_the_size_of_the_rows() -> None:
    assert made(HashMap, np.arange(ROWS) % (ROWS // 4)).capacity >= ROWS


def test_a_refused_allocation_leaves_the_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(table: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(HashMap, "shrink", refuse)
    large = made(HashMap, REPEATED)
    assert large.capacity >= ROWS and len(large) == KEYS
