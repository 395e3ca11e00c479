"""States of sharded tables, and ``torch.distributed.checkpoint``, which saves them for other numbers of ranks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks
from .test_checkpoint import TYPES, check, fill, group_of, new_table

N = 2_000


def dcp_save(path: str, world: int, key: Any, value: Any, n: int) -> None:
    import torch
    import torch.distributed.checkpoint as dcp

    if group := group_of(world):
        table = new_table(key, value, group)
        fill(table, key, value, n, 3)
        dcp.save({"step": torch.tensor(7), "table": table}, checkpoint_id=path, process_group=group)
        check(table, key, value, n, 3)


def dcp_load(path: str, world: int, key: Any, value: Any, n: int) -> None:
    import torch
    import torch.distributed.checkpoint as dcp

    if group := group_of(world):
        table = new_table(key, value, group, capacity=50)
        fill(table, key, value, 17)  # keys that go
        state = {"step": torch.tensor(0), "table": table}
        dcp.load(state, checkpoint_id=path, process_group=group)
        assert state["step"].item() == 7 and state["table"] is table
        check(table, key, value, n, 3)


@pytest.mark.parametrize(("key", "value"), TYPES, ids=str)
def test_saved_by_three_ranks_and_loaded_by_two(ranks: Ranks, tmp_path: Path, key: Any, value: Any) -> None:
    ranks.run(dcp_save, str(tmp_path), 3, key, value, N)
    ranks.run(dcp_load, str(tmp_path), 2, key, value, N)


@pytest.mark.parametrize(("saved_by", "loaded_by", "n"), [(2, 3, N), (1, 3, N), (3, 1, 0)])
def test_other_numbers_of_ranks(ranks: Ranks, tmp_path: Path, saved_by: int, loaded_by: int, n: int) -> None:
    ranks.run(dcp_save, str(tmp_path), saved_by, "int64", "int64", n)
    ranks.run(dcp_load, str(tmp_path), loaded_by, "int64", "int64", n)


def refuse_state(kind: str) -> dict[int, str]:
    from warphash import CollectiveError

    table = new_table("int64", "int64", group_of(3))
    fill(table, "int64", "int64", 300)
    state = pickle.loads(pickle.dumps(table.state_dict()))
    other = new_table("int64", {"types": "int32", "class": None}.get(kind, "int64"), group_of(3))
    fill(other, "int64", None if kind == "class" else "int64", 200)
    name = next(name for name, entry in state.items() if name != "table" and len(entry) > 32)
    if table.rank == 1:
        if kind == "altered":
            state[name] = state[name][:-1] + bytes([state[name][-1] ^ 1])
        elif kind == "cut":
            state[name] = state[name][:-1]
        elif kind == "no bytes":
            state[name] = 5
        elif kind == "lacks":
            del state[name], state["table"]
    with pytest.raises(CollectiveError) as caught:
        other.load_state_dict(state)
    check(other, "int64", None if kind == "class" else "int64", 200)
    return caught.value.failures


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("altered", "CorruptFile: shard"),
        ("cut", "CorruptFile: shard"),
        ("no bytes", "CorruptFile: shard"),
        ("lacks", "ParameterError: the state lacks table and 1 more entries of rank 1 of 3"),
        ("types", "DtypeError: the state must be that of a table of"),
        ("class", "DtypeError: the state must be that of a table of"),
    ],
)
def test_a_state_that_is_refused(ranks: Ranks, kind: str, said: str) -> None:
    made = ranks.run(refuse_state, kind)
    assert made[0] == made[1] == made[2]
    assert list(made[0]) == ([0, 1, 2] if kind in ("types", "class") else [1])
    assert all(text.startswith(said) for text in made[0].values())


def keep_ranks_of_a_bounded_table() -> list[int]:
    table = new_table("int64", "int64", group_of(3), max_size=1_000, evict="lru")
    fill(table, "int64", "int64", N)
    table.find(np.arange(100))
    other = new_table("int64", "int64", group_of(3), max_size=1_000, evict="lru")
    other.load_state_dict(table.state_dict())
    other.local.evict(len(other.local) - sum(other.local.keys(like="numpy") < 100), like="numpy")
    return other.local.keys(like="numpy").tolist()


def test_a_state_has_the_ranks_of_a_bounded_table(ranks: Ranks) -> None:
    made = ranks.run(keep_ranks_of_a_bounded_table)
    assert sorted(key for keys in made for key in keys) == list(range(100))
