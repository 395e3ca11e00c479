"""Sharded tables whose keys or values are strings of any length, or keys of several columns, beside a dict."""

from __future__ import annotations

import itertools
import random
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from support.refusals import refusing

from .ranks import Ranks

KEYS, STEPS = 600, 17

NULL = 5
"""The number of the key that is null, or has a null in it."""

KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "text to text": ("str", "str", {}),
    "text to numbers": ("str", "int64", {}),
    "numbers to text": ("int64", "str", {}),
    "bytes to rows": ("bytes", ("int32", 3), {"nulls": "key"}),
    "text without nulls to bytes": ("str", "bytes", {"nulls": "drop"}),
    "columns to text": (["str", "int16", "bytes"], "str", {}),
    "columns to numbers": (["str", "int16"], "int64", {"nulls": "key"}),
    "columns of numbers": (["uint8", "int64"], "float64", {}),
    "numbers or null": ("int64", "str", {"nulls": "key"}),
    "floats by value": (["float32", "str"], "int64", {"floats": "value", "nulls": "drop"}),
}


# ---- keys and values of numbers
def text(k: int) -> str:
    """Of no byte, of a few, of characters of several bytes, and now and then of thousands."""
    if k % 97 == 3:
        return "" if k < 97 else "long" * (10 * k) + str(k)
    return "é" * (k % 4) + "x" * (k * k % 23) + str(k)


def item(k: int, kind: str) -> Any:
    """The item of a number in a column of some type: other items for other numbers, but for narrow types."""
    if kind == "str":
        return text(k)
    if kind == "bytes":
        return b"\0" * (k % 3) + text(k).encode()
    if kind == "float32":
        return random.choice([0.0, -0.0]) if k % 5 == 0 else float(k % 5)
    return k % 200 if kind == "uint8" else k


def has_null(k: int, rules: dict[str, Any]) -> bool:
    return k == NULL and rules.get("nulls") in ("key", "drop")


def keys_of(numbers: list[int], key: Any, rules: dict[str, Any], library: str) -> Any:
    kinds = key if isinstance(key, list) else [key]
    columns = []
    for place, kind in enumerate(kinds):
        items = [item(k // 2 if place and kind != "int64" else k, kind) for k in numbers]
        if place == 0:
            items = [None if has_null(k, rules) else each for k, each in zip(numbers, items, strict=True)]
        columns.append(items)
    if isinstance(key, str):
        return column_of(columns[0], key, library)
    if library == "list":
        return list(zip(*columns, strict=True))
    return tuple(column_of(column, kind, library) for column, kind in zip(columns, kinds, strict=True))


def column_of(items: list[Any], kind: str, library: str) -> Any:
    if library == "arrow" and find_spec("pyarrow"):
        import pyarrow as arrow

        return arrow.array(items, {"str": arrow.string(), "bytes": arrow.binary()}.get(kind, kind))
    if kind in ("str", "bytes") or None in items:
        return items if library == "list" else np.array(items, object)
    return items if library == "list" and items else np.array(items, kind)


def values_of(numbers: list[int], value: Any, library: str) -> Any:
    if isinstance(value, tuple):
        return np.array([[n, n, n] for n in numbers], value[0]).reshape(len(numbers), value[1])
    return column_of([item(n, value) for n in numbers], value, library)


def plain(column: Any) -> list[Any]:
    """A column of any library as a list."""
    return column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column).tolist()


def plain_value(n: int | None, value: Any) -> Any:
    """The value of a number, or the one of an absent key."""
    if isinstance(value, tuple):
        return [n or 0] * 3
    if n is None:
        return {"str": "", "bytes": b""}.get(value, 0)
    return item(n, value)


# ---- random calls
def walk(kind: str, piece_bytes: int, seed: int) -> tuple[int, int]:
    """Random calls of a rank. Every answer is compared. Returns the keys of all ranks, and those here."""
    import torch.distributed as dist

    import warphash.distributed as wd
    from warphash import HashMap

    key, value, rules = KINDS[kind]
    rank, world = dist.get_rank(), dist.get_world_size()
    library = ["list", "numpy", "arrow"][(rank + seed) % 3]
    chance, model = random.Random(seed), dict[int, int]()
    table = wd.ShardedMap(key, value, piece_bytes=piece_bytes, **rules)
    alone = HashMap(key, value, device="cpu", **rules)
    is_dropped = rules.get("nulls") == "drop"
    for step in range(STEPS):
        sizes = [chance.choice([0, 1, 50, 900]) for _ in range(world)]
        batches = [[chance.randrange(KEYS) for _ in range(n)] for n in sizes]
        if step % 8 == 7:  # so many that a sample sees the one key that repeats
            batches = [[7 if k % 3 else k % KEYS for k in range(n * 40)] for n in sizes]
        mine, verb = (
            batches[rank],
            chance.choice(["insert", "assign", "first", "last", "add", "erase", "find_or_insert"]),
        )
        if verb == "add" and value in ("str", "bytes"):
            verb = "insert"
        keys, values = keys_of(mine, key, rules, library), values_of([k + step for k in mine], value, library)
        everything, before = [k for batch in batches for k in batch], set(model)
        kept = [k for k in everything if not (is_dropped and k == NULL)]
        if verb == "erase":
            flags = table.erase(keys)
            expected = before & set(kept)
            for k in kept:
                model.pop(k, None)
        else:
            if verb == "find_or_insert":
                held, flags = table.find_or_insert(keys, values)
                there = [None if is_dropped and k == NULL else model.get(k, k + step) for k in mine]
                assert plain(held) == [plain_value(n, value) for n in there]
            elif verb in ("first", "last", "add"):
                flags = table.upsert(keys, values, verb)
            else:
                flags = getattr(table, verb)(keys, values)
            expected = set(kept) - before
            for k in kept:
                if verb in ("assign", "last") or k not in model:
                    model[k] = k + step
                elif verb == "add":
                    model[k] += k + step
        every: list[Any] = [None] * world
        dist.all_gather_object(every, [k for k, flag in zip(mine, plain(flags), strict=True) if flag])
        assert sorted(k for part in every for k in part) == sorted(expected), (step, verb)
        assert table.total() == len(model)
        sought = list(range(0, KEYS + 30, 3))[rank::world] + [NULL] * rank
        given = keys_of(sought, key, rules, library)
        found_values, found = table.find(given)
        assert plain(found) == plain(table.contains(given)) == [k in model for k in sought]
        assert plain(found_values) == [plain_value(model.get(k), value) for k in sought]
        assert [type(found_values), type(found)] == [type(answer) for answer in alone.find(given)]
    table.local.check()
    return len(model), len(table.local)


@pytest.mark.parametrize("piece_bytes", [1 << 26, 20_000], ids=["one round", "many rounds"])
@pytest.mark.parametrize("kind", KINDS)
def test_verbs_answer_as_a_dict(ranks: Ranks, kind: str, piece_bytes: int) -> None:
    made = ranks.run(walk, kind, piece_bytes, len(kind))
    assert {total for total, _ in made} == {sum(own for _, own in made)}
    assert all(own for _, own in made)


def walk_with_equal_hashes(seed: int) -> tuple[int, int]:
    from warphash.distributed import ragged

    def same(engine: Any, rows: int, n: int, secrets: Any, out: int) -> None:
        engine.fill(out, 0, 8 * n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ragged, "hashes_of", same)
        return walk("text to numbers", 1 << 26, seed)


def test_keys_of_one_hash_are_other_keys(ranks: Ranks) -> None:
    made = ranks.run(walk_with_equal_hashes, 31)
    assert sorted(own for _, own in made) == [0, 0, made[0][0]]


# ---- sets, lists and numbers
def walk_of_sets(key: Any, rules: dict[str, Any], piece_bytes: int, seed: int) -> None:
    import torch.distributed as dist

    import warphash.distributed as wd

    rank, world = dist.get_rank(), dist.get_world_size()
    library = ["list", "numpy", "arrow"][rank]
    chance, model = random.Random(seed), set[int]()
    table = wd.ShardedSet(key, piece_bytes=piece_bytes, **rules)
    for step in range(10):
        batches = [[chance.randrange(400) for _ in range(chance.choice([0, 1, 300]))] for _ in range(world)]
        everything = {k for batch in batches for k in batch}
        keys = keys_of(batches[rank], key, rules, library)
        flags = table.erase(keys) if step % 3 == 2 else table.insert(keys)
        every: list[Any] = [None] * world
        dist.all_gather_object(every, [k for k, flag in zip(batches[rank], plain(flags), strict=True) if flag])
        assert sorted(k for part in every for k in part) == sorted(
            everything & model if step % 3 == 2 else everything - model
        )
        model = model - everything if step % 3 == 2 else model | everything
        sought = list(range(410))[rank::world]
        assert plain(table.contains(keys_of(sought, key, rules, library))) == [k in model for k in sought]
        assert table.total() == len(model)


@pytest.mark.parametrize(("key", "rules"), [("bytes", {"nulls": "key"}), (["str", "str"], {})], ids=str)
def test_sets_answer_as_a_set(ranks: Ranks, key: Any, rules: dict[str, Any]) -> None:
    ranks.run(walk_of_sets, key, rules, 900, 3)


def walk_of_lists(key: Any, piece_bytes: int, seed: int) -> None:
    import torch.distributed as dist

    import warphash.distributed as wd

    rank, world = dist.get_rank(), dist.get_world_size()
    library = ["numpy", "arrow", "list"][rank]
    chance, model = random.Random(seed), dict[int, list[int]]()
    table = wd.ShardedMultiMap(key, "int32", piece_bytes=piece_bytes)
    for step in range(8):
        batches = [[chance.randrange(200) for _ in range(chance.choice([0, 1, 400]))] for _ in range(world)]
        keys = keys_of(batches[rank], key, {}, library)
        if step % 4 == 3:
            erased = table.erase_all(keys)
            every: list[Any] = [None] * world
            dist.all_gather_object(every, sum(plain(erased)))
            assert sum(every) == sum(len(model.pop(k, [])) for k in {k for batch in batches for k in batch})
        else:
            table.insert(keys, np.array([1_000 * step + k for k in batches[rank]], np.int32))
            for k in (k for batch in batches for k in batch):
                model.setdefault(k, []).append(1_000 * step + k)
        sought = list(range(210))[rank::world] * rank
        given = keys_of(sought, key, {}, library)
        values, offsets = table.find_all(given)
        ends, held = plain(offsets), plain(values)
        assert [sorted(held[a:b]) for a, b in itertools.pairwise(ends)] == [sorted(model.get(k, [])) for k in sought]
        assert plain(table.count(given)) == [len(model.get(k, [])) for k in sought]
    assert table.total() == sum(map(len, model.values()))


@pytest.mark.parametrize("key", ["str", ["bytes", "int64"]], ids=str)
def test_lists_answer_as_a_dict_of_lists(ranks: Ranks, key: Any) -> None:
    ranks.run(walk_of_lists, key, 1_100, 5)


def lists_of_shaped_keys() -> list[Any]:
    import warphash.distributed as wd

    table = wd.ShardedMultiMap("int64", "int64")
    table.insert(np.array([1, 1, 2]), np.array([7, 7, 8]))
    made = [tuple(map(plain, table.find_all(np.array([[2, 5], [2, 2]]))))]
    if find_spec("pandas"):
        import pandas

        for numbers in ([2, 5, 2, 2], [2.0, 5.5, 2.0, 2.0]):
            made.append(tuple(map(plain, table.find_all(pandas.Series(numbers, index=list("abcd"))))))
    return made


def test_lists_of_keys_with_a_shape_or_labels(ranks: Ranks) -> None:
    for made in ranks.run(lists_of_shaped_keys):
        assert all(lists == ([8] * 9, [0, 3, 3, 6, 9]) for lists in made)


def walk_of_numbers(key: Any, rules: dict[str, Any], seed: int) -> None:
    import torch.distributed as dist

    import warphash.distributed as wd

    rank, world = dist.get_rank(), dist.get_world_size()
    chance, model = random.Random(seed), dict[int, int]()
    table = wd.ShardedMap(key, "int32", piece_bytes=3_000, **rules)
    is_dropped = rules.get("nulls") == "drop"
    for _ in range(6):
        batches = [[chance.randrange(700) for _ in range(chance.choice([0, 1, 500]))] + [NULL] for _ in range(world)]
        numbers, new = table.number(keys_of(batches[rank], key, rules, ["arrow", "list", "numpy"][rank]), first=4)
        every: list[Any] = [None] * world
        dist.all_gather_object(every, (plain(numbers), plain(new)))
        added: list[int] = []
        for batch, (given, flags) in zip(batches, every, strict=True):
            for k, number, flag in zip(batch, given, flags, strict=True):
                if is_dropped and k == NULL:
                    assert number == 0 and not flag
                    continue
                added += [k] * flag
                assert model.setdefault(k, number) == number
        assert len(added) == len(set(added))
        assert sorted(model.values()) == list(range(4, 4 + len(model)))
    assert table.total() == len(model)


@pytest.mark.parametrize(
    ("key", "rules"),
    [("str", {"nulls": "drop"}), (["str", "int64"], {"nulls": "key"}), (["uint8", "int64"], {})],
    ids=str,
)
def test_numbers_are_dense_over_all_ranks(ranks: Ranks, key: Any, rules: dict[str, Any]) -> None:
    ranks.run(walk_of_numbers, key, rules, 13)


# ---- answers that stay, and rounds
def find_there(kind: str) -> tuple[list[Any], list[Any], list[int]]:
    import warphash.distributed as wd

    key, value, rules = KINDS[kind]
    table = wd.ShardedMap(key, value, **rules)
    library = ["list", "numpy", "arrow"][table.rank]
    own = list(range(table.rank, 200, table.world))
    table.insert(keys_of(own, key, rules, library), values_of(own, value, library))
    mine = list(range(100 * table.rank, 100 * table.rank + 150))
    given = keys_of(mine, key, rules, library)
    there = table.find(given, order="owner")
    values, found = there.columns
    assert plain(there.back(np.array(plain(found), bool))) == plain(table.find(given)[1])
    again = table.local.find(there.keys)
    assert plain(again[0]) == plain(values) and plain(again[1]) == plain(found)
    assert type(values) is type(again[0]) and plain(table.contains(given, order="owner").columns[0]) == plain(found)
    columns = [plain(column) for column in (there.keys if isinstance(key, list) else [there.keys])]
    return list(zip(*columns, strict=True)), plain(values), there.counts


@pytest.mark.parametrize("kind", ["text to text", "bytes to rows", "columns to text", "columns of numbers"])
def test_answers_stay_with_the_owners(ranks: Ranks, kind: str) -> None:
    key, value, rules = KINDS[kind]
    made = ranks.run(find_there, kind)
    keys = [keys_of([k], key, rules, "list")[0] for k in range(350)]
    number_of = {row if isinstance(row, tuple) else (row,): k for k, row in enumerate(keys)}
    arrived = []
    for rows, values, counts in made:
        numbers = [number_of[row] for row in rows]
        assert values == [plain_value(k if k < 200 else None, value) for k in numbers]
        assert sum(counts) == len(rows)
        for begin, count in zip(itertools.accumulate(counts, initial=0), counts, strict=False):
            assert numbers[begin : begin + count] == sorted(numbers[begin : begin + count])
        arrived += numbers
    assert sorted(arrived) == sorted(k for rank in range(3) for k in range(100 * rank, 100 * rank + 150))
    assert all(rows for rows, _, _ in made)


def rounds_of_unlike_rows() -> list[tuple[int, int]]:
    """The bytes and the rows that this rank receives in each round. All rows of all ranks have one owner."""
    import torch.distributed as dist

    import warphash.distributed as wd
    from warphash.distributed.ragged_trips import RaggedTrips

    table, owners = wd.ShardedMap("str", "int32", piece_bytes=5_000), wd.ShardedSet("str")
    keys = [f"{'w' * (5_000 if k % 40 == 7 else k % 9)}{k}" for k in range(600)]
    own: list[Any] = [None] * table.world
    dist.all_gather_object(own, plain(owners.contains(keys if table.rank == 0 else [], order="owner").keys))
    chosen, seen = own[1], list[tuple[int, int]]()
    cuts_of = RaggedTrips._cuts

    def noted(*given: Any) -> Any:
        made = cuts_of(*given)
        seen.extend((cut.n * (8 + 4 + 1) + cut.texts[0][1][-1][1], cut.n) for cut in made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RaggedTrips, "_cuts", noted)
        table.insert(chosen, np.arange(len(chosen), dtype=np.int32))
    assert table.total() == len(set(chosen))
    return seen


def test_no_rank_receives_more_than_a_piece_and_a_row_of_each_rank(ranks: Ranks) -> None:
    made = ranks.run(rounds_of_unlike_rows)
    assert len({len(rounds) for rounds in made}) == 1 and len(made[1]) > 10
    assert all(n == 0 for rank in (0, 2) for _, n in made[rank])
    longest = 5_000 + 3 + 13
    assert max(nbytes for nbytes, _ in made[1]) <= 5_000 + 3 * longest
    assert sum(n for _, n in made[1]) > 400


# ---- calls that fail on one rank
FAILED = 1


def new_pairs() -> tuple[Any, list[str]]:
    import warphash.distributed as wd

    table = wd.ShardedMap("str", "str", piece_bytes=1_500)
    keys = ["x" * (k % 17) + str(k) for k in range(60 * table.rank, 60 * table.rank + 60)]
    table.insert(keys, keys)
    return table, keys


def check(table: Any, keys: list[str], values: list[str] | None = None) -> None:
    held, found = table.find(keys)
    assert plain(held) == (keys if values is None else values) and all(plain(found))
    assert table.total() == 180
    table.local.check()


def give_wrong_keys() -> list[dict[int, str]]:
    import warphash.distributed as wd
    from warphash import CollectiveError

    table, keys = new_pairs()
    is_wrong, made = table.rank == FAILED, []
    calls = [
        lambda: table.insert([b"x"] if is_wrong else keys, ["y"] if is_wrong else keys),
        lambda: table.insert(keys, keys[:5] if is_wrong else keys),
        lambda: table.upsert(keys, keys, "add"),
        lambda: table.find(np.zeros(3) if is_wrong else keys),
        lambda: table.find(keys, default=b"x" if is_wrong else "x"),
        lambda: table.find(keys, default="x" if is_wrong else "y"),
        lambda: table.erase([None] if is_wrong else keys),
        lambda: table.find_or_insert(keys, keys[:5] if is_wrong else keys),
        lambda: wd.ShardedMap("bytes" if is_wrong else "str", "str"),
        lambda: wd.ShardedMap("str", "str", nulls="key" if is_wrong else "drop"),
        lambda: wd.ShardedMap(["str", "int64"] if is_wrong else ["str", "int32"], "str"),
    ]
    for call in calls:
        with pytest.raises(CollectiveError) as caught:
            call()
        made.append(caught.value.failures)
        check(table, keys)
    return made


def test_wrong_arrays_and_types_of_one_rank(ranks: Ranks) -> None:
    made = ranks.run(give_wrong_keys)
    assert made[0] == made[1] == made[2]
    everywhere = (2, 5, 8, 9, 10)
    assert [list(failures) for failures in made[0]] == [[0, 1, 2] if n in everywhere else [FAILED] for n in range(11)]


def refuse_each_allocation(verb: str, kind: str) -> int:
    """Refuse one allocation after the other on one rank, of the engine or of messages, until a call needs no more."""
    from warphash.distributed.channel import Channel
    from warphash.errors import CollectiveError

    allocate = Channel.memory
    for at in itertools.count(1):
        table, keys = new_pairs()
        others = [key + "!" for key in keys]
        given = [keys, others] if verb in ("assign", "find_or_insert") else [keys]
        calls, is_failed = itertools.count(1), False

        def memory(channel: Any, nbytes: int, at: int = at, calls: Any = calls) -> Any:
            if next(calls) == at:
                raise MemoryError("no room for messages")
            return allocate(channel, nbytes)

        with (
            pytest.MonkeyPatch.context() as patch,
            refusing(table.local._parts.front.engine, at if table.rank == FAILED and kind == "engine" else 1 << 60),
        ):
            if table.rank == FAILED and kind == "messages":
                patch.setattr(Channel, "memory", memory)
            try:
                getattr(table, verb)(*given)
            except CollectiveError as error:
                is_failed = True
                assert list(error.failures) == [FAILED] and error.failures[FAILED].startswith("MemoryError")
        again = getattr(table, verb)(*given)
        if verb == "erase":
            assert table.total() == 0
        else:
            check(table, keys, others if verb == "assign" else None)
        if verb in ("find", "find_or_insert"):
            assert plain(again[0]) == keys
        if not is_failed:
            return at
    return 0


@pytest.mark.parametrize("kind", ["messages", "engine"])
@pytest.mark.parametrize("verb", ["assign", "find", "find_or_insert", "erase"])
def test_memory_that_is_refused_at_each_allocation(ranks: Ranks, verb: str, kind: str) -> None:
    made = ranks.run(refuse_each_allocation, verb, kind)
    assert made[0] == made[1] == made[2] > (8 if kind == "messages" else 1)


# ---- names of columns
def give_frames(kind: str) -> list[Any]:
    import pandas

    import warphash.distributed as wd
    from warphash import CollectiveError

    table = wd.ShardedSet(["str", "str"] if kind == "columns" else ("int64", (2,)))
    rank = table.rank

    def frame(a: list[int], b: list[int]) -> Any:
        made = [[str(k) for k in column] if kind == "columns" else column for column in (a, b)]
        return pandas.DataFrame(dict(zip("ab", made, strict=True)))

    mine, made = frame([1, 2, rank], [2, 1, 7]), []
    with pytest.raises(CollectiveError) as caught:
        table.insert(mine[["b", "a"]] if rank == 2 else mine)
    made.append((caught.value.failures, table.local._parts.front.key.names.known))
    # A rank that gave no frame knows the names from the others.
    table.insert(mine if rank == 0 else mine.to_numpy() if kind == "rows" else tuple(mine[c].to_numpy() for c in "ab"))
    made.append(table.local._parts.front.key.names.known)
    flipped = mine[["b", "a"]]
    assert table.contains(flipped).tolist() == [True] * 3
    assert not np.asarray(table.insert(flipped)).any()
    with pytest.raises(CollectiveError) as caught:
        table.insert(mine.rename(columns={"a": "x"}) if rank == 1 else mine)
    made += [list(caught.value.failures), table.total()]
    return made


@pytest.mark.parametrize("kind", ["columns", "rows"])
def test_all_ranks_know_the_same_names_of_columns(ranks: Ranks, kind: str) -> None:
    pytest.importorskip("pandas")
    made = ranks.run(give_frames, kind)
    assert made[0] == made[1] == made[2]
    failed, names, *others = made[0]
    assert failed == ({0: "a, b", 1: "a, b", 2: "b, a"}, None) and names == ("a", "b") and others == [[1], 5]
