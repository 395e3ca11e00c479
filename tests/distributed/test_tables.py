"""Sharded tables beside a dict that has the batches of all ranks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks, new_ranks

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
        sizes = [chance.choice([0, 1, 50, 3_000, 40_000]) for _ in range(world)]
        batches = [[chance.randrange(KEYS) for _ in range(n)] for n in sizes]
        hot = chance.random()
        if hot < 0.4:  # one key alone, or two of them among others
            batches = [
                [7 if hot < 0.2 else chance.choice([7, 9, chance.randrange(KEYS)]) for _ in range(n)] for n in sizes
            ]
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


def bytes_sent(n: int) -> tuple[int, list[int]]:
    """What a rank sends in a lookup, and how many keys it receives from each other one."""
    import warphash.distributed as distributed
    from warphash.distributed.channel import Call

    table = distributed.ShardedSet("int64")
    mine = np.arange(n) + n * table.rank
    table.insert(mine)
    sent: list[int] = []
    exchange = Call.exchange

    def noted(call: Call, given: Any, received: Any) -> Any:
        given = list(given)
        sent.extend(len(message.data) for message in given)
        return exchange(call, given, received)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Call, "exchange", noted)
        assert table.contains(mine).all()
    arrived = distributed.exchange(mine)
    counts = [0 if rank == table.rank else count for rank, count in enumerate(arrived.counts)]
    return sum(sent), counts


def test_flags_travel_as_bits(ranks: Ranks) -> None:
    n = 100_000
    made = ranks.run(bytes_sent, n)
    for rank, (sent, received) in enumerate(made):
        keys = sum(counts[rank] for _, counts in made)
        assert keys > 0 and sent == 8 * keys + sum(-(-count // 8) for count in received)


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


def walk_of_lists(key: Any, piece_bytes: int, seed: int) -> None:
    import torch.distributed as dist

    import warphash.distributed as distributed

    rank, world = dist.get_rank(), dist.get_world_size()
    chance, model = random.Random(seed), dict[int, list[int]]()
    table = distributed.ShardedMultiMap(key, "int32", piece_bytes=piece_bytes)
    for step in range(12):
        batches = [[chance.randrange(300) for _ in range(chance.choice([0, 1, 700]))] for _ in range(world)]
        mine = batches[rank]
        if chance.random() < 0.3:
            erased = table.erase_all(keys_of(mine, key))
            every: list[Any] = [None] * world
            dist.all_gather_object(every, int(np.asarray(erased, np.int64).sum()))
            gone = {k for batch in batches for k in batch}
            assert sum(every) == sum(len(model.pop(k, [])) for k in gone)
        else:
            table.insert(keys_of(mine, key), np.array([1_000 * step + k for k in mine], np.int32))
            for k in (k for batch in batches for k in batch):
                model.setdefault(k, []).append(1_000 * step + k)
        own = random.Random(100 * step + rank)  # which draws other keys on each rank
        sought = [own.randrange(320) for _ in range(50 * (rank + 1))] if step % 3 else []
        values, offsets = table.find_all(keys_of(sought, key))
        assert offsets.tolist() == [0, *np.cumsum([len(model.get(k, [])) for k in sought], dtype=np.int64).tolist()]
        for place, k in enumerate(sought):
            assert sorted(values[offsets[place] : offsets[place + 1]].tolist()) == sorted(model.get(k, []))
        assert table.count(keys_of(sought, key)).tolist() == [len(model.get(k, [])) for k in sought]
        assert table.contains(keys_of(sought, key)).tolist() == [k in model for k in sought]
    assert table.total() == sum(map(len, model.values()))


@pytest.mark.parametrize("piece_bytes", [1 << 26, 1_700], ids=["one round", "many rounds"])
@pytest.mark.parametrize("key", ["int64", "S12"])
def test_lists_answer_as_a_dict_of_lists(ranks: Ranks, key: Any, piece_bytes: int) -> None:
    ranks.run(walk_of_lists, key, piece_bytes, 7)


def count_rows_of_rounds(most: int) -> list[int]:
    """The most rows that this rank's table is given in one call, of a first batch and of one more."""
    import warphash.distributed as distributed
    from warphash import HashSet
    from warphash.distributed import route

    given: list[int] = []
    insert = HashSet.insert

    def noted(table: Any, keys: Any, **options: Any) -> Any:
        given.append(keys.shape[0])
        return insert(table, keys, **options)

    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(route, "_MOST_ROWS", most)
        patch.setattr(route, "_FEW_ROWS", 0)
        patch.setattr(HashSet, "insert", noted)
        table = distributed.ShardedSet("int64")
        for first in (0, 10**6):
            keys = np.arange(3 * most) + first + 3 * most * table.rank
            assert table.insert(keys).all()
            made.append(max(given))
    assert table.total() == 6 * most * table.world
    return made


def test_no_round_has_more_rows_than_a_table_takes(ranks: Ranks) -> None:
    most = 1_000
    for made in ranks.run(count_rows_of_rounds, most):
        assert all(most // 2 < rows <= most + 32 * ranks.world for rows in made)


def erase_pairs_of_hot_keys(hot: int, absent: int) -> list[int]:
    """Erase 20,000 pairs of each rank, of some hot keys, beside absent ones. Batches are large enough for samples."""
    import warphash.distributed as distributed

    table = distributed.ShardedMultiMap("int64", "int32")
    n = 20_000
    keys = np.arange(n) % hot
    table.insert(np.concatenate([keys, keys[: n // 2]]), np.zeros(n + n // 2, np.int32))
    erased = table.erase(np.concatenate([keys, -1 - np.arange(n) % absent]))
    table.local.check()
    return [int(erased[:n].sum()), int(erased[n:].sum()), table.total()]


@pytest.mark.parametrize(("hot", "absent"), [(1, 20_000), (100, 100)], ids=["one key apart", "all repeat"])
def test_each_element_erases_a_pair_of_a_hot_key(ranks: Ranks, hot: int, absent: int) -> None:
    assert ranks.run(erase_pairs_of_hot_keys, hot, absent) == [[20_000, 0, 10_000 * ranks.world]] * ranks.world


def walk_of_numbers(key: Any, value: Any, piece_bytes: int, first: int, seed: int) -> None:
    import torch.distributed as dist

    import warphash.distributed as distributed

    rank, world = dist.get_rank(), dist.get_world_size()
    chance, model = random.Random(seed), dict[int, int]()
    table = distributed.ShardedMap(key, value, piece_bytes=piece_bytes)
    for _ in range(10):
        batches = [[chance.randrange(2_000) for _ in range(chance.choice([0, 1, 900]))] for _ in range(world)]
        numbers, new = table.number(keys_of(batches[rank], key), first=first)
        assert numbers.dtype == np.dtype(value)
        every: list[Any] = [None] * world
        dist.all_gather_object(every, (batches[rank], numbers.tolist(), new.tolist()))
        added = [k for keys, _, flags in every for k, flag in zip(keys, flags, strict=True) if flag]
        assert sorted(added) == sorted({k for batch in batches for k in batch} - set(model))
        for keys, given, _ in every:
            for k, number in zip(keys, given, strict=True):
                assert model.setdefault(k, number) == number
        assert sorted(model.values()) == list(range(first, first + len(model)))
    assert table.total() == len(model)


@pytest.mark.parametrize(
    ("key", "value", "first"), [("int64", "int64", 0), ("S12", "int32", 5), ("uint32", "uint16", 1)]
)
def test_numbers_are_dense_over_all_ranks(ranks: Ranks, key: Any, value: Any, first: int) -> None:
    ranks.run(walk_of_numbers, key, value, 3_000, first, 11)


def number_too_many() -> str:
    import warphash
    import warphash.distributed as distributed

    table = distributed.ShardedMap("int64", "uint8")
    try:
        table.number(np.arange(300))
    except warphash.CollectiveError as error:
        assert table.total() == 0
        table.number(np.arange(256))
        return str(error)
    return ""


def test_numbers_that_do_not_fit_are_refused_and_no_key_is_added(ranks: Ranks) -> None:
    assert all("make the table with wider values" in text for text in ranks.run(number_too_many))


@pytest.mark.parametrize("world", [2, 4])
def test_other_numbers_of_ranks(world: int) -> None:
    pytest.importorskip("torch")
    with new_ranks(world) as some:
        made = some.run(walk, "int64", "int64", 1_700, 3, "torch")
        assert {total for total, _ in made} == {sum(own for _, own in made)}
        some.run(walk_of_lists, "int64", 1_700, 4)
        some.run(walk_of_numbers, "int64", "int32", 3_000, 0, 5)
