"""Checkpoints of sharded tables: any number of ranks reads what any number wrote; damage, failures and kills."""

from __future__ import annotations

import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks, new_ranks
from .test_tables import keys_of, values_of

N = 3_000
TYPES = [("int64", "int64"), ("uint32", "float32"), ("S40", ("int32", 3)), (("int16", 5), "float64"), ("int64", None)]

_groups: dict[int, Any] = {}


def group_of(world: int) -> Any:
    """In each of three ranks: the group of the first ones; None on the other ranks."""
    import torch.distributed as dist

    if world not in _groups:
        _groups[world] = dist.new_group(list(range(world)))
    return _groups[world] if dist.get_rank() < world else None


def new_table(key: Any, value: Any, group: Any, **options: Any) -> Any:
    import warphash.distributed as distributed

    if value is None:
        return distributed.ShardedSet(key, group=group, **options)
    return distributed.ShardedMap(key, value, group=group, **options)


def class_of(value: Any) -> Any:
    import warphash.distributed as distributed

    return distributed.ShardedSet if value is None else distributed.ShardedMap


def fill(table: Any, key: Any, value: Any, n: int, factor: int = 1) -> None:
    mine = list(range(table.rank, n, table.world))
    columns = [keys_of(mine, key)]
    if value is not None:
        columns.append(values_of([factor * k for k in mine], value))
    table.insert(*columns)


def check(table: Any, key: Any, value: Any, n: int, factor: int = 1) -> None:
    """The table has the keys of `fill`, each at its owner, and goes on to work."""
    assert table.total() == n
    table.local.check()
    sought = list(range(0, n + 50, 7))[table.rank :: table.world]
    there = [k < n for k in sought]
    assert np.asarray(table.contains(keys_of(sought, key))).tolist() == there
    if value is not None:
        values, found = table.find(keys_of(sought, key))
        assert found.tolist() == there
        assert np.array_equal(values, values_of([factor * k if k < n else 0 for k in sought], value))
    more = list(range(n, n + 10))[table.rank :: table.world]
    columns = [keys_of(more, key), *([] if value is None else [values_of(more, value)])]
    assert table.insert(*columns).all() and table.total() == n + 10
    assert table.erase(keys_of(more, key)).all() and table.total() == n


def save(path: str, world: int, key: Any, value: Any, n: int, factor: int = 1, note: Any = None) -> None:
    if group := group_of(world):
        table = new_table(key, value, group)
        fill(table, key, value, n, factor)
        table.save(path, note=note)
        check(table, key, value, n, factor)


def load(path: str, world: int, key: Any, value: Any, n: int, factor: int = 1, note: Any = None) -> None:
    if group := group_of(world):
        table = class_of(value).load(path, group=group)
        assert table.note == note
        check(table, key, value, n, factor)


def refused(path: str, world: int, value: Any, verb: str = "load") -> list[Any] | None:
    """What all ranks of a group raise: its text, and the texts by rank."""
    import warphash.distributed as distributed
    from warphash import CollectiveError

    if not (group := group_of(world)):
        return None
    table = distributed.ShardedMap("int64", "int64", group=group)
    fill(table, "int64", "int64", 100)
    with pytest.raises(CollectiveError) as caught:
        class_of(value).load(path, group=group) if verb == "load" else table.save(path)
    check(table, "int64", "int64", 100)
    return [str(caught.value), caught.value.failures]


def data_files(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.name != "manifest.json")


@pytest.mark.parametrize(("key", "value"), TYPES, ids=str)
@pytest.mark.parametrize(("saved_by", "loaded_by"), [(3, 3), (3, 1), (3, 2), (2, 3)])
def test_any_number_of_ranks_reads_a_checkpoint(
    ranks: Ranks, tmp_path: Path, key: Any, value: Any, saved_by: int, loaded_by: int
) -> None:
    path = str(tmp_path / "some" / "folder")
    ranks.run(save, path, saved_by, key, value, N, 3, {"next": 7})
    ranks.run(load, path, loaded_by, key, value, N, 3, {"next": 7})


def test_empty_tables(ranks: Ranks, tmp_path: Path) -> None:
    for key, value in TYPES:
        ranks.run(save, str(tmp_path), 3, key, value, 0)
        ranks.run(load, str(tmp_path), 2, key, value, 0)
        ranks.run(save, str(tmp_path), 2, key, value, 1)
        ranks.run(load, str(tmp_path), 3, key, value, 1)


def test_a_save_replaces_that_of_another_number_of_ranks(ranks: Ranks, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("not of the checkpoint")
    for world, n in ((3, 500), (1, 2_000), (2, 0), (3, 90)):
        ranks.run(save, str(tmp_path), world, "int64", "int64", n, world, world)
        ranks.run(load, str(tmp_path), 4 - world, "int64", "int64", n, world, world)
        assert len(list(tmp_path.iterdir())) == 2 * world + 2
    assert (tmp_path / "mine.txt").read_text() == "not of the checkpoint"


def test_a_rank_reads_only_its_shards(ranks: Ranks, tmp_path: Path) -> None:
    """Two ranks load what three saved: rank 0 reads no byte of the third file, and rank 1 none of the first one."""
    ranks.run(save, str(tmp_path), 3, "int64", "int64", N)
    keys = [path for path in data_files(tmp_path) if path.name.endswith("keys")]
    for damaged, reader in ((0, 0), (2, 1)):
        content = bytearray(keys[damaged].read_bytes())
        content[10] ^= 1
        keys[damaged].write_bytes(content)
        made = ranks.run(refused, str(tmp_path), 2, "int64")
        assert made[0] == made[1] and list(made[0][1]) == [reader]
        content[10] ^= 1
        keys[damaged].write_bytes(content)
    ranks.run(load, str(tmp_path), 2, "int64", "int64", N)


def test_damage_anywhere_is_seen(ranks: Ranks, tmp_path: Path) -> None:
    path = tmp_path / "whole"
    ranks.run(save, str(path), 3, "uint32", "float32", N)
    first = data_files(path)[0].name
    for name in (first, data_files(path)[-1].name, "manifest.json"):
        content = (path / name).read_bytes()
        for number, at in enumerate(range(0, len(content), len(content) // 5)):
            other = bytearray(content)
            other[at] ^= 1
            damages = [bytes(other), content[:at], content + b"\0", None]
            damaged = damages[number % len(damages)]
            if damaged is None:
                (path / name).unlink()
            else:
                (path / name).write_bytes(damaged)
            made = ranks.run(refused, str(path), 2, "float32")
            assert made[0] == made[1] and made[0][0].startswith("load"), made
            is_gone = damaged is None and name == "manifest.json"
            assert all(text.startswith("PathError" if is_gone else "CorruptFile") for text in made[0][1].values())
            (path / name).write_bytes(content)
    ranks.run(load, str(path), 2, "uint32", "float32", N)


def planted(path: Path, change: Any) -> None:
    """Change a manifest, and give it the right digest."""
    from warphash.distributed.checkpoint import _digest_of

    whole = json.loads((path / "manifest.json").read_text())
    change(whole["checkpoint"])
    whole["sha256"] = _digest_of(whole["checkpoint"])
    (path / "manifest.json").write_text(json.dumps(whole))


def swap_two_counts(about: Any) -> None:
    counts = about["parts"][0]["counts"]
    at = next(shard for shard in range(0, 16) if counts[shard] != counts[shard + 1])
    if at % 16 == 15:
        at = next(shard for shard in range(16, 31) if counts[shard] != counts[shard + 1])
    counts[at], counts[at + 1] = counts[at + 1], counts[at]


WRONG: dict[str, tuple[Any, str]] = {
    "version": (lambda about: about.update(version=2), "version must be 1"),
    "format": (lambda about: about.update(format="tar"), "format must be 'warphash checkpoint'"),
    "owner hash": (lambda about: about.update(owner_hash="crc"), "owner_hash must be 'murmur3-64'"),
    "token": (lambda about: about.update(token="../../../etc/x"), "16 hexadecimal digits"),
    "no parts": (lambda about: about.update(parts=[]), "the parts have 0 rows"),
    "a part less": (lambda about: about["parts"].pop(), "must count the rows of 2048 shards"),
    "a count": (lambda about: about["parts"][0]["counts"].__setitem__(3, -1), "must count the rows of"),
    "counts": (swap_two_counts, "keys that are not of the shards"),
    "total": (lambda about: about["table"].update(count=N - 1), f"the parts have {N:,} rows"),
    "digests": (lambda about: about["parts"][1]["digests"]["values"].pop(), "digests of 86 blocks"),
    "no values": (lambda about: about["parts"][1]["digests"].pop("values"), "digests of 86 blocks"),
    "kind": (lambda about: about["table"].update(kind="MultiMap"), "it holds a 'MultiMap'"),
    "type": (lambda about: about["table"]["columns"][0].update(dtype="<i4"), "in place of"),
    "type of as many bytes": (lambda about: about["table"]["columns"][0].update(dtype="<c8"), "CorruptFile"),
    "design": (lambda about: about["table"].update(design="none"), "no design 'none'"),
    "a list": (lambda about: about.update(table=[]), "is no manifest"),
    "missing": (lambda about: about.pop("note"), "is no manifest"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_manifest_made_by_hand(ranks: Ranks, tmp_path: Path, wrong: str) -> None:
    ranks.run(save, str(tmp_path), 3, "int64", "int64", N)
    change, said = WRONG[wrong]
    planted(tmp_path, lambda about: None)
    ranks.run(load, str(tmp_path), 2, "int64", "int64", N)
    planted(tmp_path, change)
    made = ranks.run(refused, str(tmp_path), 2, "int64")
    assert made[0] == made[1] and said in made[0][0], made
    assert all(text.startswith("CorruptFile") for text in made[0][1].values())


def test_a_key_twice(ranks: Ranks, tmp_path: Path) -> None:
    """The digests and the shards are right, and the local table has a key less than the manifest says."""
    import hashlib

    ranks.run(save, str(tmp_path), 1, "int64", "int64", N)
    keys = next(path for path in data_files(tmp_path) if path.name.endswith("keys"))
    rows = np.frombuffer(keys.read_bytes(), np.int64).copy()

    def repeat(about: Any) -> None:
        counts, digests = about["parts"][0]["counts"], about["parts"][0]["digests"]["keys"]
        shard = next(shard for shard, count in enumerate(counts) if count > 1)
        starts = np.concatenate([[0], np.cumsum(counts)])
        rows[starts[shard] + 1] = rows[starts[shard]]
        block = shard // 16
        digests[block] = hashlib.sha256(rows[starts[16 * block] : starts[16 * block + 16]].tobytes()).hexdigest()

    planted(tmp_path, repeat)
    keys.write_bytes(rows.tobytes())
    made = ranks.run(refused, str(tmp_path), 2, "int64")
    assert made[0] == made[1] and f"repeats 1 of its {N // 2:,}"[:10] in made[0][0], made


def test_a_set_is_no_map(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(save, str(tmp_path), 3, "int64", None, N)
    made = ranks.run(refused, str(tmp_path), 3, "int64")
    assert all("it holds a 'HashSet'" in text for text in made[0][1].values()) and len(made[0][1]) == 3


@contextmanager
def files_of_at_most(nbytes: int) -> Iterator[None]:
    """As on a full disk: the system writes no more to a file of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def save_on_a_full_disk(path: str, full: int, nbytes: int, n: int) -> dict[int, str]:
    from warphash import CollectiveError

    table = new_table("int64", "int64", group_of(3))
    fill(table, "int64", "int64", n, 2)
    with files_of_at_most(nbytes if table.rank == full else 1 << 30), pytest.raises(CollectiveError) as caught:
        table.save(path, note="new")
    if table.rank == full:
        assert isinstance(caught.value.__cause__, MemoryError)
    assert table.note is None
    check(table, "int64", "int64", n, 2)
    assert caught.value.rounds == 0
    return caught.value.failures


@pytest.mark.parametrize(
    ("full", "nbytes", "n"), [(0, 900, N), (1, 900, N), (2, 0, N), (0, 20_000, 300)], ids=["0", "1", "2", "manifest"]
)
@pytest.mark.parametrize("older", [True, False], ids=["older", "first"])
def test_a_full_disk_leaves_the_old_checkpoint(
    ranks: Ranks, tmp_path: Path, full: int, nbytes: int, n: int, older: bool
) -> None:
    if older:
        ranks.run(save, str(tmp_path), 3, "int64", "int64", 50, 1, "old")
    before = sorted(tmp_path.iterdir())
    made = ranks.run(save_on_a_full_disk, str(tmp_path), full, nbytes, n)
    assert made[0] == made[1] == made[2] and list(made[0]) == [full]
    assert "MemoryError: there is no room for" in made[0][full]
    assert sorted(tmp_path.iterdir()) == before, "nothing else is left behind"
    if older:
        ranks.run(load, str(tmp_path), 2, "int64", "int64", 50, 1, "old")
    ranks.run(save, str(tmp_path), 2, "int64", "int64", 60, 1, "newer")
    ranks.run(load, str(tmp_path), 3, "int64", "int64", 60, 1, "newer")


def test_paths_that_take_no_folder(ranks: Ranks, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for path in (file, file / "below"):
        made = ranks.run(refused, str(path), 3, "int64", "save")
        assert all(text.startswith("PathError") for text in made[0][1].values())
        made = ranks.run(refused, str(path), 3, "int64")
        assert all(text.startswith("PathError") for text in made[0][1].values())
    assert file.read_text() == "mine"
    made = ranks.run(refused, str(tmp_path / "nothing"), 3, "int64")
    assert all("has no checkpoint that can be read" in text for text in made[0][1].values())


def save_otherwise(path: str, kind: str) -> dict[int, str]:
    import warphash.distributed as distributed
    from warphash import CollectiveError

    table = new_table("int64", "int64", group_of(3))
    fill(table, "int64", "int64", 100)
    paths = [path, path, path + "/other"] if kind == "paths" else [path] * 3
    notes: list[Any] = {"notes": [1, 1, 2], "no JSON": [{1}, 1, 1], "NaN": [1, float("nan"), 1]}.get(kind, [1] * 3)
    if kind == "keys of others" and table.rank == 1:
        table.local.insert(np.arange(100), np.arange(100))
    with pytest.raises(CollectiveError) as caught:
        if kind == "load":
            distributed.ShardedMap.load(path, group=group_of(3), piece_bytes=100 + table.rank)
        else:
            table.save(paths[table.rank], note=notes[table.rank])
    return caught.value.failures


@pytest.mark.parametrize(
    ("kind", "failed", "said"),
    [
        ("paths", [0, 1, 2], "/other"),
        ("notes", [0, 1, 2], "2"),
        ("no JSON", [0], "ParameterError: a note must be what JSON can hold, got {1}"),
        ("NaN", [1], "ParameterError: a note must be what JSON can hold, got nan"),
        ("keys of others", [1], "WarphashError: rank 1 of 3 has keys of shards"),
        ("load", [0, 1, 2], "piece_bytes=102"),
    ],
)
def test_ranks_that_save_otherwise(ranks: Ranks, tmp_path: Path, kind: str, failed: list[int], said: str) -> None:
    ranks.run(save, str(tmp_path), 3, "int64", "int64", 50, 1, "old")
    made = ranks.run(save_otherwise, str(tmp_path), kind)
    assert made[0] == made[1] == made[2] and list(made[0]) == failed
    assert said in made[0][failed[-1]]
    ranks.run(load, str(tmp_path), 2, "int64", "int64", 50, 1, "old")
    assert len(data_files(tmp_path)) == 6


def save_to_folders_of_their_own(path: str) -> dict[int, str]:
    from warphash import CollectiveError

    table = new_table("int64", "int64", group_of(3))
    fill(table, "int64", "int64", 100)
    os.chdir(Path(path) / str(table.rank))
    with pytest.raises(CollectiveError) as caught:
        table.save("here")
    return caught.value.failures


def test_a_folder_that_only_some_ranks_see(ranks: Ranks, tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / str(rank)).mkdir()
    made = ranks.run(save_to_folders_of_their_own, str(tmp_path))
    assert list(made[0]) == [0] and "all ranks must see one folder" in made[0][0]
    assert not list((tmp_path / "0" / "here").iterdir())


def load_two_checkpoints(path: str) -> dict[int, str]:
    import warphash.distributed as distributed
    from warphash import CollectiveError

    os.chdir(Path(path) / str(group_of(3).rank() // 2))
    with pytest.raises(CollectiveError, match="load it again") as caught:
        distributed.ShardedMap.load("here", group=group_of(3))
    return caught.value.failures


def test_ranks_that_read_two_checkpoints(ranks: Ranks, tmp_path: Path) -> None:
    for each in "01":
        ranks.run(save, str(tmp_path / each / "here"), 3, "int64", "int64", 50)
    made = ranks.run(load_two_checkpoints, str(tmp_path))
    assert made[0] == made[1] == made[2] and made[0][0] == made[0][1] != made[0][2]


def save_bounded(path: str, kind: str) -> list[int]:
    table = new_table(
        "int64", None if kind == "set" else "int64", group_of(3), max_size=1_000, evict="lru", capacity=99
    )
    fill(table, "int64", None if kind == "set" else "int64", 2_000)
    table.contains(np.arange(100))
    table.save(path)
    again = type(table).load(path, group=group_of(3))
    recent = sum(key < 100 for key in again.local.keys(like="numpy").tolist())
    again.local.evict(len(again.local) - recent, like="numpy")
    return again.local.keys(like="numpy").tolist()


@pytest.mark.parametrize("kind", ["map", "set"])
def test_bounded_tables_keep_their_ranks(ranks: Ranks, tmp_path: Path, kind: str) -> None:
    made = ranks.run(save_bounded, str(tmp_path), kind)
    assert sorted(key for keys in made for key in keys) == list(range(100)), "what was asked for last leaves last"
    assert len(data_files(tmp_path)) == (6 if kind == "set" else 9)


def save_with_options(path: str) -> None:
    import warphash.distributed as distributed

    table = new_table("int64", "int32", group_of(3), design="quotient_cuckoo", on_full="raise", capacity=4_000, seed=5)
    fill(table, "int64", "int32", N)
    table.save(path)
    for world in (3, 2, 1):
        if group := group_of(world):
            again = distributed.ShardedMap.load(path, group=group, piece_bytes=500)
            assert (again.local.design, again.local.seed) == ("quotient_cuckoo", 5)
            assert again.local._parts.facts.options["on_full"] == "raise"
            assert table.local.capacity <= again.local.capacity * world <= 3 * 3 * table.local.capacity
            check(again, "int64", "int32", N)


def test_options_are_those_of_the_saved_table(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(save_with_options, str(tmp_path))


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 41])
def test_processes_that_are_stopped_at_any_call_of_the_system(tmp_path: Path, step: int) -> None:
    pytest.importorskip("torch")
    tests = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "support.stopped_checkpoints", str(tmp_path), str(step)]
    said = subprocess.run(command, capture_output=True, text=True, env=os.environ | tests, timeout=500)
    assert said.returncode == 0, said.stdout + said.stderr
    assert int(said.stdout.split()[-1]) > 100 // step


def save_a_multimap(path: str) -> None:
    import warphash.distributed as distributed

    table = distributed.ShardedMultiMap("int64", "int64", group=group_of(3))
    table.insert(np.arange(300) % 100, np.arange(300) + 1_000 * table.rank)
    table.save(path, note=[1, "two"])


def load_a_multimap(path: str, world: int) -> None:
    import warphash.distributed as distributed

    if group := group_of(world):
        table = distributed.ShardedMultiMap.load(path, group=group)
        assert table.note == [1, "two"] and table.total() == 900
        values, offsets = table.find_all(np.arange(101))
        for key, (begin, end) in enumerate(itertools.pairwise(offsets)):
            expected = [key + 100 * i + 1_000 * rank for rank in range(3) for i in range(3)] if key < 100 else []
            assert sorted(values[begin:end].tolist()) == expected


def test_multimaps_have_checkpoints(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(save_a_multimap, str(tmp_path))
    for world in (3, 2, 1):
        ranks.run(load_a_multimap, str(tmp_path), world)
    made = ranks.run(refused, str(tmp_path), 3, "int64")
    assert all("it holds a 'MultiMap'" in text for text in made[0][1].values())


def save_until_a_rank_is_killed(path: str, killed: int, delay_s: float) -> int:
    """Save the same keys with the number of the save as their values; the number of the last save that was done."""
    from warphash import PeerLost

    table = new_table("int64", "int64", None)
    done = 0
    if table.rank == killed:
        threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
    mine = np.arange(table.rank, N, table.world)
    with pytest.raises(PeerLost):
        while True:
            table.assign(mine, np.full(len(mine), done + 1))
            table.save(path, note=done + 1)
            done += 1
    return done


def load_of_one_save(path: str, least: int, most: int) -> int:
    if not (group := group_of(2)):
        return 0
    table = class_of("int64").load(path, group=group)
    values, found = table.find(np.arange(N))
    assert found.all() and (values == table.note).all() and table.total() == N
    assert least <= table.note <= most
    return int(table.note)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_a_rank_that_is_killed_while_all_save(ranks: Ranks, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    killed = chance.randrange(3)
    with new_ranks(3, timeout_s=8) as lost:
        made = lost.outcomes(save_until_a_rank_is_killed, str(tmp_path), killed, 0.5 + chance.random())
    assert [error for rank, (_, error) in enumerate(made) if rank != killed] == [None, None]
    done = [number for rank, (number, _) in enumerate(made) if rank != killed]
    assert max(done) - min(done) <= 1 and min(done) > 1
    assert ranks.run(load_of_one_save, str(tmp_path), max(done), min(done) + 1)[2] == 0
    ranks.run(save, str(tmp_path), 3, "int64", "int64", 50)
    assert len(data_files(tmp_path)) == 6, "what the killed rank has left is removed"
