"""Lookups with ``order="owner"``: the answers stay with the owners of the keys, and can be brought back."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks
from .test_tables import keys_of, values_of

SIZES = {"empty": (0, 0, 0), "uneven": (0, 900, 41), "even": (400, 400, 400)}
TYPES = [("int64", "int64"), ("uint32", "float32"), ("S12", ("int32", 3)), (("int16", 5), "float64")]


def given(array: Any, library: str) -> Any:
    import torch

    return torch.from_numpy(array) if library == "torch" else array.tolist() if library == "list" else array


def asked(sizes: tuple[int, ...]) -> list[list[int]]:
    """The keys that each rank asks for; those below 200 are there. Rank 1 asks for one key again and again."""
    chance = np.random.default_rng(7)
    return [
        [5 if rank == 1 and k % 2 else k for k in chance.integers(0, 260, n).tolist()] for rank, n in enumerate(sizes)
    ]


def find_there(key: Any, value: Any, sizes: tuple[int, ...], library: str) -> tuple[Any, ...]:
    import warphash.distributed as wd

    table = wd.ShardedMap(key, value)
    own = list(range(table.rank, 200, table.world))
    table.insert(keys_of(own, key), values_of([3 * k for k in own], value))
    mine = asked(sizes)[table.rank]
    there = table.find(given(keys_of(mine, key), library), order="owner")
    values, found = there.columns
    assert type(there.keys) is type(values) is type(found) is type(given(np.array([0]), library)) or library == "list"
    flags = table.contains(given(keys_of(mine, key), library), order="owner")
    assert np.array_equal(np.asarray(flags.keys), np.asarray(there.keys))
    assert np.array_equal(np.asarray(flags.columns[0]), np.asarray(found))
    # What an owner computes goes back to those who asked.
    asked_values, asked_found = table.find(given(keys_of(mine, key), library))
    assert np.array_equal(np.asarray(there.back(values)), np.asarray(asked_values))
    assert np.array_equal(np.asarray(there.back(found)), np.asarray(asked_found))
    sent = table.local.contains(there.keys)
    assert np.array_equal(np.asarray(sent), np.asarray(found))
    return np.asarray(there.keys), np.asarray(values), np.asarray(found), there.ranks.tolist()


@pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize(("key", "value"), TYPES, ids=str)
def test_answers_stay_with_the_owners(ranks: Ranks, key: Any, value: Any, sizes: tuple[int, ...]) -> None:
    library = {"int64": "torch", "uint32": "list"}.get(key, "numpy") if isinstance(key, str) else "numpy"
    made = ranks.run(find_there, key, value, sizes, library)
    batches = asked(sizes)
    number_of = {bytes(row): k for k, row in enumerate(keys_of(list(range(260)), key))}
    arrived: list[list[list[int]]] = [[[] for _ in range(ranks.world)] for _ in range(ranks.world)]
    for parts, (keys, values, found, sources) in zip(arrived, made, strict=True):
        numbers = [number_of[bytes(row)] for row in keys]
        assert found.tolist() == [k < 200 for k in numbers]
        assert np.array_equal(values, values_of([3 * k if k < 200 else 0 for k in numbers], value))
        assert sources == sorted(sources)
        for k, source in zip(numbers, sources, strict=True):
            parts[source].append(k)
    owner_of = {k: owner for owner, parts in enumerate(arrived) for part in parts for k in part}
    for owner, parts in enumerate(arrived):
        assert parts == [[k for k in batch if owner_of[k] == owner] for batch in batches]
    assert len(set(owner_of.values())) == (ranks.world if sizes[1] else 0)


def lists_there() -> tuple[Any, ...]:
    import warphash.distributed as wd

    table = wd.ShardedMultiMap("int64", "int32")
    own = np.arange(50) * table.world + table.rank
    table.insert(np.repeat(own, own % 4), np.arange((own % 4).sum(), dtype=np.int32))
    mine = np.arange(170 * table.rank)[::-1].copy()
    there, counted = table.find_all(mine, order="owner"), table.count(mine, order="owner")
    values, offsets = there.columns
    assert np.array_equal(counted.columns[0], np.diff(offsets)) and len(values) == offsets[-1]
    assert np.array_equal(there.back(np.diff(offsets)), table.count(mine))
    expected = table.local.find_all(there.keys)
    assert np.array_equal(values, expected[0]) and np.array_equal(offsets, expected[1])
    return there.keys.tolist(), np.diff(offsets).tolist(), there.counts


def test_lists_stay_with_the_owners(ranks: Ranks) -> None:
    made = ranks.run(lists_there)
    for keys, sizes, _ in made:
        assert sizes == [k % 4 if k < 150 else 0 for k in keys]
    assert sorted(k for keys, _, _ in made for k in keys) == sorted([*range(170), *range(340)])
    assert [sum(column) for column in zip(*(counts for _, _, counts in made), strict=True)] == [0, 170, 340]


def keys_of_another_type() -> int:
    import warphash.distributed as wd

    table = wd.ShardedMap("int8", "int64")
    table.insert(np.arange(3, dtype=np.int8), np.arange(3))
    there = table.find(np.array([1, 300, 2.5, 2]) if table.rank else np.array([], np.int8), order="owner")
    values, found = there.columns
    assert there.keys.dtype == np.int8 and found.all() and np.array_equal(values, there.keys)
    assert there.back(values).tolist() == ([1, 2] if table.rank else [])
    return len(there)


def test_keys_that_the_type_does_not_have_are_left_out(ranks: Ranks) -> None:
    assert sum(ranks.run(keys_of_another_type)) == 2 * (ranks.world - 1)


def fail_at_owners() -> list[dict[int, str]]:
    import warphash.distributed as wd
    from warphash import CollectiveError, HashMap
    from warphash.distributed.channel import Channel

    table = wd.ShardedMap("int64", "int64")
    keys = np.arange(50) + 50 * table.rank
    table.insert(keys, keys)
    is_wrong, made = table.rank == 1, []

    def call(keys: Any = keys, **options: Any) -> None:
        try:
            there = table.find(keys, **{"order": "owner", **options})
        except CollectiveError as error:
            made.append(error.failures)
        else:
            made.append({})
            assert there.columns[1].all() and np.array_equal(there.columns[0], there.keys)

    def refuse(at: int) -> Any:
        allocate, calls = Channel.memory, itertools.count(1)

        def memory(channel: Any, nbytes: int) -> Any:
            if next(calls) == at:
                raise MemoryError("no room for messages")
            return allocate(channel, nbytes)

        return memory

    def no_room(table: Any, *given: Any) -> Any:
        raise MemoryError("no room at the owner")

    call(order="any")
    call(np.zeros((2, 2), complex) if is_wrong else keys)
    call(default="text" if is_wrong else 0)
    call(default=int(is_wrong))
    with pytest.MonkeyPatch.context() as patch:
        if is_wrong:
            patch.setattr(HashMap, "find", no_room)
        call()
    for at in itertools.count(1):
        with pytest.MonkeyPatch.context() as patch:
            if is_wrong:
                patch.setattr(Channel, "memory", refuse(at))
            call()
        if not made[-1]:
            break
        call()
        assert not made[-1]
    return made


def test_a_failure_on_one_rank_is_raised_by_all(ranks: Ranks) -> None:
    made = ranks.run(fail_at_owners)
    assert made[0] == made[1] == made[2]
    order, keys, default, defaults, owner, *memory = made[0]
    assert [*order] == [*defaults] == [0, 1, 2] and "ParameterError" in order[0]
    assert [*keys] == [*default] == [*owner] == [1]
    assert "DtypeError" in keys[1] and "DtypeError" in default[1] and "no room at the owner" in owner[1]
    assert len(memory) > 4 and all("no room for messages" in failed[1] for failed in memory[:-1:2])
