"""Sharded tables beside a dict that has the batches of all ranks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks

KEYS, STEPS = 4_000, 40
TYPES = [("int64", "int64"), ("uint32", "float32"), ("S12", ("int32", 3)), (("int16", 5), "float64")]


def keys_of(numbers: list[int], key: Any) -> Any:
    if isinstance(key, tuple):
        return np.array([[n, n // 7, -n, 1, 0] for n in numbers], np.int16).reshape(len(numbers), 5)
    return np.array([str(n).encode() for n in numbers], key) if key == "S12" else np.array(numbers, key)


def values_of(numbers: list[int], value: Any) -> Any:
    if isinstance(value, tuple):
        return np.array([[n, n, n] for n in numbers], value[0]).reshape(len(numbers), value[1])
    return np.array(numbers, value)


def walk(key: Any, value: Any, piece_bytes: int, seed: int, kind: str) -> tuple[int, int]:
    """Random calls of a rank. Every answer is compared. Returns the keys of all ranks, and those here."""
    import torch
    import torch.distributed as dist

    import warphash.distributed as distributed

    rank, world = dist.get_rank(), dist.get_world_size()
    chance, model = random.Random(seed), dict[int, int]()
    table = distributed.ShardedMap(key, value, piece_bytes=piece_bytes)

    def given(array: Any) -> Any:
        return torch.from_numpy(array) if kind == "torch" else array

    for step in range(STEPS):
        sizes = [chance.choice([0, 1, 50, 3_000]) for _ in range(world)]
        batches = [[chance.randrange(KEYS) for _ in range(n)] for n in sizes]
        if chance.random() < 0.2:
            batches = [[7] * n for n in sizes]
        mine, verb = batches[rank], chance.choice(["insert", "assign", "upsert", "erase", "find_or_insert", "contains"])
        keys, values = given(keys_of(mine, key)), given(values_of([k + step for k in mine], value))
        everything, before = [k for batch in batches for k in batch], set(model)
        if verb == "erase":
            flags = table.erase(keys)
            expected = before & set(everything)
            for k in everything:
                model.pop(k, None)
        elif verb == "contains":
            flags = table.contains(keys)
            assert np.asarray(flags).tolist() == [k in model for k in mine]
            continue
        else:
            if verb == "insert":
                flags = table.insert(keys, values)
            elif verb == "assign":
                flags = table.assign(keys, values)
            elif verb == "upsert":
                flags = table.upsert(keys, values, "add")
            else:
                held, flags = table.find_or_insert(keys, values)
                expected_values = values_of([model.get(k, k + step) for k in mine], value)
                assert np.array_equal(np.asarray(held), expected_values)
            expected = set(everything) - before
            for k in everything:
                if verb == "assign" or k not in model:
                    model[k] = k + step
                elif verb == "upsert":
                    model[k] += k + step
        # Each key is added or erased by one element of all ranks.
        chosen = [k for k, flag in zip(mine, np.asarray(flags).tolist(), strict=True) if flag]
        every: list[Any] = [None] * world
        dist.all_gather_object(every, chosen)
        assert sorted(k for part in every for k in part) == sorted(expected)
        assert table.total() == len(model)
        sought = list(range(0, KEYS + 100, 3))[rank::world]
        found_values, found = table.find(given(keys_of(sought, key)))
        assert type(found) is type(keys)
        found_values, found = np.asarray(found_values), np.asarray(found)
        assert found.tolist() == [k in model for k in sought]
        assert np.array_equal(found_values, values_of([model.get(k, 0) for k in sought], value))
    own = np.asarray(table.to_arrays(like="numpy")[0])
    return len(model), len(own)


@pytest.mark.parametrize("piece_bytes", [1 << 26, 1_700], ids=["one round", "many rounds"])
@pytest.mark.parametrize(("key", "value"), TYPES, ids=str)
def test_verbs_answer_as_a_dict(ranks: Ranks, key: Any, value: Any, piece_bytes: int) -> None:
    kind = "torch" if key == "int64" else "numpy"
    made = ranks.run(walk, key, value, piece_bytes, 5, kind)
    assert {total for total, _ in made} == {sum(own for _, own in made)}


def walk_alone(seed: int) -> bool:
    import torch.distributed as dist

    import warphash.distributed as distributed

    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    table = distributed.ShardedMap("int64", "int64", group=alone)
    keys = np.random.default_rng(seed).integers(0, 100, 1_000)
    table.upsert(keys, np.ones(1_000, np.int64), "add")
    values, found = table.find(np.arange(110))
    return bool(np.array_equal(values, np.bincount(keys, minlength=110))) and bool(found[:100].all())


def test_a_group_of_one_rank_has_a_table_of_its_own(ranks: Ranks) -> None:
    assert ranks.run(walk_alone, 3) == [True] * ranks.world
