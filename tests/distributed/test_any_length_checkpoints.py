"""Checkpoints and states of sharded tables whose keys or values have any length, or whose keys have several columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks
from .test_any_length import KINDS, NULL, has_null, keys_of, plain, plain_value, values_of
from .test_checkpoint import data_files, group_of

N = 700


def new_table(kind: str, group: Any, **options: Any) -> Any:
    import warphash.distributed as wd

    key, value, rules = KINDS[kind]
    return wd.ShardedMap(key, value, group=group, **rules, **options)


def fill(table: Any, kind: str, n: int, shift: int = 0) -> None:
    key, value, rules = KINDS[kind]
    mine = list(range(table.rank, n, table.world))
    table.insert(keys_of(mine, key, rules, "list"), values_of([k + shift for k in mine], value, "list"))


def check(table: Any, kind: str, n: int, shift: int = 0) -> None:
    """The table has the keys of `fill`, each at its owner, and goes on to work."""
    key, value, rules = KINDS[kind]
    is_dropped = [has_null(k, rules) and rules["nulls"] == "drop" for k in range(n)]
    assert table.total() == n - sum(is_dropped)
    table.local.check()
    sought = [*range(table.rank, n + 50, 3 * table.world), NULL]
    there = [k < n and not is_dropped[k] for k in sought]
    values, found = table.find(keys_of(sought, key, rules, "numpy"))
    assert plain(found) == there
    expected = [plain_value(k + shift if held else None, value) for k, held in zip(sought, there, strict=True)]
    assert plain(values) == expected
    more = [k for k in range(n + table.rank, n + 10, table.world) if k != NULL]
    assert all(plain(table.insert(keys_of(more, key, rules, "list"), values_of(more, value, "list"))))
    assert all(plain(table.erase(keys_of(more, key, rules, "list"))))
    assert table.total() == n - sum(is_dropped)


def save(path: str, world: int, kind: str, n: int, shift: int) -> None:
    if group := group_of(world):
        table = new_table(kind, group)
        fill(table, kind, n, shift)
        table.save(path, note=shift)
        check(table, kind, n, shift)


def load(path: str, world: int, kind: str, n: int, shift: int) -> None:
    import warphash.distributed as wd

    if group := group_of(world):
        table = wd.ShardedMap.load(path, group=group)
        assert table.note == shift and table.local.key_dtype == new_table(kind, group).local.key_dtype
        check(table, kind, n, shift)


@pytest.mark.parametrize("kind", KINDS)
def test_three_ranks_save_and_two_and_one_load(ranks: Ranks, tmp_path: Path, kind: str) -> None:
    for n, shift in ((N, 3), (1, 2), (0, 1)):
        ranks.run(save, str(tmp_path), 3, kind, n, shift)
        for world in (2, 1):
            ranks.run(load, str(tmp_path), world, kind, n, shift)
    ranks.run(save, str(tmp_path), 1, kind, N, 4)
    ranks.run(load, str(tmp_path), 3, kind, N, 4)


def lists_and_sets(path: str) -> None:
    import warphash.distributed as wd

    lists, words = wd.ShardedMultiMap("str", "int64"), wd.ShardedSet(["str", "int8"])
    lists.insert(["a", "bb", "a"], np.arange(3) + 3 * lists.rank)
    lists.save(f"{path}/lists")
    words.insert((["a", "bb", str(words.rank)], np.array([1, 2, 3], np.int8)))
    words.save(f"{path}/words")
    lists, words = wd.ShardedMultiMap.load(f"{path}/lists"), wd.ShardedSet.load(f"{path}/words")
    assert lists.count(["bb", "a", "c"]).tolist() == [3, 6, 0]
    assert words.contains((["a", "a", "2"], np.array([1, 2, 3], np.int8))).tolist() == [True, False, True]
    with pytest.raises(Exception, match="holds no HashMap"):
        wd.ShardedMap.load(f"{path}/words")


def test_multimaps_and_sets(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(lists_and_sets, str(tmp_path))


def refused(path: str, world: int) -> list[Any] | None:
    import warphash.distributed as wd
    from warphash import CollectiveError

    if not (group := group_of(world)):
        return None
    with pytest.raises(CollectiveError) as caught:
        wd.ShardedMap.load(path, group=group)
    return [str(caught.value), caught.value.failures]


def test_damaged_files(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(save, str(tmp_path), 3, "text to text", N, 1)
    files = data_files(tmp_path)
    assert [path.name.split("-", 2)[2] for path in files] == ["keys", "keys_lengths", "values", "values_lengths"] * 3
    for path in files[:4]:
        content = path.read_bytes()
        for damaged, said in ((b"", "truncated"), (content[:-1], "truncated"), (content[:9] + b"?" + content[10:], "")):
            path.write_bytes(damaged)
            made = ranks.run(refused, str(tmp_path), 3)
            assert made[0] == made[1] == made[2]
            assert list(made[0][1]) == [0] and "CorruptFile" in made[0][1][0] and said in made[0][1][0]
        path.write_bytes(content)
    ranks.run(load, str(tmp_path), 3, "text to text", N, 1)


@pytest.mark.parametrize("damage", ["lacks bytes", "other bytes", "negative", "bytes of numbers", "type"])
def test_manifests_that_do_not_fit(ranks: Ranks, tmp_path: Path, damage: str) -> None:
    from warphash.distributed.checkpoint import _digest_of

    ranks.run(save, str(tmp_path), 3, "text to numbers", N, 1)
    path = tmp_path / "manifest.json"
    about = json.loads(path.read_text())["checkpoint"]
    part = about["parts"][0]
    if damage == "lacks bytes":
        del part["nbytes"]
    elif damage == "other bytes":
        place = next(n for n, count in enumerate(part["nbytes"]["keys"]) if count)
        part["nbytes"]["keys"][place] -= 1
        part["nbytes"]["keys"][place + 16] += 1  # of another block
    elif damage == "negative":
        part["nbytes"]["keys"][0] = -1
    elif damage == "bytes of numbers":
        part["nbytes"]["values"] = part["counts"]
    else:
        about["table"]["columns"][0] = {"columns": [{"dtype": "str", "shape": []}, 7], "nulls": [False, False]}
    path.write_text(json.dumps({"sha256": _digest_of(about), "checkpoint": about}))
    made = ranks.run(refused, str(tmp_path), 3)
    assert made[0] == made[1] == made[2] and all("CorruptFile" in text for text in made[0][1].values())


# ---- states
def dcp_save(path: str, world: int, kind: str) -> None:
    import torch.distributed.checkpoint as dcp

    if group := group_of(world):
        table = new_table(kind, group)
        fill(table, kind, N, 3)
        dcp.save({"table": table}, checkpoint_id=path, process_group=group)


def dcp_load(path: str, world: int, kind: str) -> None:
    import torch.distributed.checkpoint as dcp

    if group := group_of(world):
        table = new_table(kind, group)
        fill(table, kind, 17)  # keys that go
        dcp.load({"table": table}, checkpoint_id=path, process_group=group)
        check(table, kind, N, 3)


@pytest.mark.parametrize("kind", ["text to text", "bytes to rows", "columns to numbers", "columns of numbers"])
def test_states_for_another_number_of_ranks(ranks: Ranks, tmp_path: Path, kind: str) -> None:
    ranks.run(dcp_save, str(tmp_path), 3, kind)
    ranks.run(dcp_load, str(tmp_path), 2, kind)


def refuse_state(damage: str) -> dict[int, str]:
    import hashlib

    import warphash.distributed as wd
    from warphash import CollectiveError

    table = new_table("text to numbers", group_of(3))
    fill(table, "text to numbers", N, 1)
    state = table.state_dict()
    other = table if damage == "count" else wd.ShardedMap("str", "int64", nulls="key", group=group_of(3))
    if damage == "count" and table.rank == 1:
        name = next(name for name, entry in state.items() if name != "table" and len(entry) > 60)
        body = bytes([state[name][32] + 1]) + state[name][33:]
        state[name] = hashlib.sha256(body).digest() + body
    with pytest.raises(CollectiveError) as caught:
        other.load_state_dict(state)
    check(table, "text to numbers", N, 1)
    return caught.value.failures


@pytest.mark.parametrize(
    ("damage", "said", "failed"), [("count", "CorruptFile", [1]), ("rules", "DtypeError", [0, 1, 2])]
)
def test_a_state_that_is_refused(ranks: Ranks, damage: str, said: str, failed: list[int]) -> None:
    made = ranks.run(refuse_state, damage)
    assert made[0] == made[1] == made[2] and list(made[0]) == failed
    assert all(text.startswith(said) for text in made[0].values())


def test_the_owner_of_a_string_never_changes() -> None:
    """The hash is part of the format of checkpoints."""
    pytest.importorskip("torch")
    from warphash.arrays.strings import StringArray
    from warphash.distributed.shard_order import shards_of_keys

    items = [b"", b"a", b"warphash", b"seven b", b"of nine b", b"x" * 48, b"y" * 49, b"z" * 1_000, b""]
    ends = np.cumsum([0, *(len(item) for item in items)])
    data = np.frombuffer(b"".join(items), np.uint8)
    is_null = np.arange(len(items)) == len(items) - 1
    assert shards_of_keys(StringArray(ends, data, False, ~is_null)).tolist() == [
        1155,
        610,
        4072,
        4085,
        1701,
        1632,
        3015,
        3134,
        1993,
    ]
