"""What the ranks see of a call that fails on one of them, and of a rank that is lost."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from support.refusals import refusing

from .ranks import Ranks, new_ranks

N = 300
"""Keys that each rank has in a batch: rank r of 3 those from ``N * r`` on."""

PIECE_BYTES = 17 * 120
"""Pairs of int64 and a flag go in three rounds."""

FAILED = 1
"""The rank to which something happens."""

TIMEOUT_S = 4.0


def new_map(**options: Any) -> Any:
    import warphash.distributed as distributed

    return distributed.ShardedMap("int64", "int64", piece_bytes=PIECE_BYTES, **options)


def mine(table: Any) -> Any:
    return np.arange(N) + N * table.rank


def check(table: Any, value: int = 1, n: int | None = None) -> None:
    """The table has the first keys, each with a value, and answers."""
    n = N * table.world if n is None else n
    values, found = table.find(np.arange(N * table.world + 10))
    assert np.array_equal(found, np.arange(len(found)) < n)
    assert np.array_equal(values, np.where(found, value, 0))
    assert table.total() == n
    table.local.check()


def failed(call: Callable[[], Any]) -> tuple[int, dict[int, str]]:
    """The rounds and the failures of a collective error."""
    from warphash import CollectiveError

    with pytest.raises(CollectiveError) as caught:
        call()
    return caught.value.rounds, caught.value.failures


@contextmanager
def patched(owner: Any, name: str, new: Callable[[Any], Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, new(getattr(owner, name)))
        yield


def raising(at: int, error: Callable[[], None]) -> Callable[[Any], Any]:
    """Has a method do something at its ``at``-th call, before what it does."""
    calls = [0]

    def new(original: Any) -> Any:
        def called(*given: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] == at:
                error()
            return original(*given, **options)

        return called

    return new


def no_memory() -> None:
    raise MemoryError("no room for 123 pairs")


# ---- calls that fail on one rank
def give_wrong_shapes() -> list[Any]:
    table = new_map()
    keys = mine(table)
    short = keys[:5] if table.rank == FAILED else keys
    made = [
        failed(lambda: table.insert(short, keys)),
        failed(lambda: table.upsert(keys, short, "add")),
        failed(lambda: table.find(np.zeros((2, 2), complex) if table.rank == FAILED else keys)),
        failed(lambda: table.erase(keys.astype("S4") if table.rank == FAILED else keys)),
    ]
    check(table, n=0)
    table.insert(keys, np.ones_like(keys))
    check(table)
    return made


def test_wrong_arrays_of_one_rank(ranks: Ranks) -> None:
    made = ranks.run(give_wrong_shapes)
    assert made[0] == made[1] == made[2]
    for (rounds, failures), said in zip(made[0], ["ShapeError", "ShapeError", "DtypeError", "DtypeError"], strict=True):
        assert rounds == 0 and list(failures) == [FAILED] and failures[FAILED].startswith(said), failures


def call_another_verb() -> list[Any]:
    table = new_map()
    keys = mine(table)
    others = [
        lambda: table.find(keys),
        lambda: table.upsert(keys, keys, "add"),
        lambda: table.insert(keys, keys, assume_unique=True),
        lambda: table.reserve(7),
        table.total,
    ]
    made = []
    for other in others:
        made.append(failed(other if table.rank == FAILED else lambda: table.insert(keys, keys)))
    made.append(failed(lambda: table.find(keys, default=table.rank // 2)))
    made.append(failed(lambda: table.upsert(keys, keys, "max" if table.rank == FAILED else "min")))
    check(table, n=0)
    table.insert(keys, np.ones_like(keys))
    check(table)
    return made


def test_ranks_that_call_different_verbs(ranks: Ranks) -> None:
    made = ranks.run(call_another_verb)
    assert made[0] == made[1] == made[2]
    assert all(rounds == 0 and list(failures) == [0, 1, 2] for rounds, failures in made[0])
    texts = [failures[FAILED].partition(", ")[2] for _, failures in made[0]]
    assert texts[:2] == ["find, default 0000000000000000", "upsert 'add'"] and texts[3:5] == ["reserve(7)", "total"]
    assert all(failures[0].endswith("insert, assume_unique=False") for _, failures in made[0][:5])


def make_other_tables() -> list[Any]:
    import warphash.distributed as distributed
    from warphash import CollectiveError

    is_failed = new_map().rank == FAILED
    made = []
    for key, options in (
        ("int32", {}),
        ("int64", {"design": "iceberg"}),
        ("int64", {"piece_bytes": 5}),
        ("int64", {"piece_bytes": 0}),
        ("float64", {}),
        ("int64", {"device": "cuda"}),
    ):
        given: Any = ("int64", {}) if not is_failed else (key, options)
        with pytest.raises(CollectiveError) as caught:
            distributed.ShardedMap(given[0], "int64", **given[1])
        made.append(caught.value.failures)
    return made


def test_ranks_that_make_different_tables(ranks: Ranks) -> None:
    made = ranks.run(make_other_tables)
    assert made[0] == made[1] == made[2]
    assert [list(failures) for failures in made[0]] == [[0, 1, 2]] * 3 + [[FAILED]] * 3
    assert "ParameterError" in made[0][3][FAILED] and "DtypeError" in made[0][4][FAILED]


def fail_in_the_second_round(verb: str) -> tuple[int, dict[int, str]]:
    from warphash import HashMap

    table = new_map()
    keys, ones = mine(table), np.ones(N, np.int64)
    there = N if verb == "erase" else N // 2  # a batch for an empty table goes in one round
    table.insert(keys[:there], ones[:there])

    def call() -> Any:
        return table.erase(keys) if verb == "erase" else getattr(table, verb)(keys, ones)

    if table.rank == FAILED:
        with patched(HashMap, verb, raising(2, no_memory)):
            made = failed(call)
    else:
        made = failed(call)
    assert 0 < table.total() < 3 * N
    call()
    check(table, n=0 if verb == "erase" else None)
    return made


@pytest.mark.parametrize("verb", ["insert", "assign", "erase", "find_or_insert"])
def test_a_round_that_fails_on_one_rank(ranks: Ranks, verb: str) -> None:
    made = ranks.run(fail_in_the_second_round, verb)
    assert made[0] == made[1] == made[2] == (1, {FAILED: "MemoryError: no room for 123 pairs"})


def fail_alone() -> tuple[bool, dict[int, str]]:
    import torch.distributed as dist

    from warphash import CollectiveError, HashMap

    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    table = new_map(group=alone)
    keys = np.arange(N)
    with patched(HashMap, "insert", raising(1, no_memory)), pytest.raises(CollectiveError) as caught:
        table.insert(keys, np.ones_like(keys))
    table.insert(keys, np.ones_like(keys))
    check(table)
    return caught.value.has_begun, caught.value.failures


def test_a_group_of_one_rank_outlives_a_call_that_fails(ranks: Ranks) -> None:
    assert ranks.run(fail_alone) == [(True, {0: "MemoryError: no room for 123 pairs"})] * ranks.world


def upsert_by_no_operator() -> tuple[bool, dict[int, str]]:
    from warphash.errors import CollectiveError

    table = new_map()
    keys = mine(table)
    with pytest.raises(CollectiveError) as caught:
        table.upsert(keys, keys, "subtract")
    check(table, n=0)
    return caught.value.has_begun, caught.value.failures


def test_an_operator_that_tables_do_not_have_is_refused_before_any_rank_begins(ranks: Ranks) -> None:
    for has_begun, failures in ranks.run(upsert_by_no_operator):
        assert not has_begun and sorted(failures) == list(range(ranks.world))
        assert all(said.startswith("ParameterError: op must be one of") for said in failures.values())


def insert_without_room_for_all() -> int:
    from warphash.distributed.channel import Channel

    table, n, refused = new_map(), 20_000, [0]
    keys = np.arange(n) + n * table.rank

    def without_room(original: Any) -> Any:
        def memory(channel: Channel, nbytes: int) -> Any:
            if table.rank == FAILED and nbytes > 17 * n:
                refused[0] += 1
                no_memory()
            return original(channel, nbytes)

        return memory

    with patched(Channel, "memory", without_room):
        assert table.insert(keys, np.ones_like(keys)).all()
    assert table.contains(keys).all() and table.total() == n * table.world
    return refused[0]


def test_a_first_batch_goes_in_rounds_where_one_rank_has_no_room_for_all_of_it(ranks: Ranks) -> None:
    assert ranks.run(insert_without_room_for_all) == [int(rank == FAILED) for rank in range(ranks.world)]


def fail_to_reserve(op: str) -> tuple[int, dict[int, str]]:
    from warphash import HashMap

    table = new_map()
    keys, ones = mine(table), np.ones(N, np.int64)
    table.insert(keys, ones)
    before = dict(zip(*map(np.ndarray.tolist, table.to_arrays()), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        if table.rank == FAILED:
            patch.setattr(HashMap, "reserve", lambda table, n: no_memory())
        made = failed(lambda: table.upsert(np.arange(3 * N), np.full(3 * N, 5), op))
    assert dict(zip(*map(np.ndarray.tolist, table.to_arrays()), strict=True)) == before
    check(table)
    table.upsert(np.arange(3 * N), np.full(3 * N, 5), op)
    check(table, 1 + 5 * 3 if op == "add" else 1 ^ 5)
    return made


@pytest.mark.parametrize("op", ["add", "xor"])
def test_an_upsert_that_finds_no_room_on_one_rank_changes_nothing_anywhere(ranks: Ranks, op: str) -> None:
    made = ranks.run(fail_to_reserve, op)
    assert made[0] == made[1] == made[2] == (0, {FAILED: "MemoryError: no room for 123 pairs"})


def refuse_each_allocation(verb: str) -> tuple[int, list[int]]:
    """Refuse one allocation after the other on one rank, of the engine or of messages, until a call needs no more."""
    from warphash.distributed.channel import Channel
    from warphash.errors import CollectiveError

    refused, rounds, kind = 0, [], "messages"
    at = 1
    while True:
        table = new_map()
        keys, ones = mine(table), np.ones(N, np.int64)
        given = [np.repeat(keys, 200) if verb == "hot" else keys.astype(np.float64)[::-1]]
        if verb in ("insert", "first", "max", "add", "hot"):
            given.append(np.ones(len(given[0]), np.int64))
        if verb != "first":
            table.insert(keys, ones)
        call = {"hot": "assign", "first": "insert", "max": "upsert", "add": "upsert"}.get(verb, verb)
        options = {"op": verb} if verb in ("max", "add") else {}
        is_failed = has_begun = False
        with (
            pytest.MonkeyPatch.context() as patch,
            refusing(
                table.local._parts.front.engine, at if table.rank == FAILED and kind == "engine" else 1 << 60
            ) as engine,
        ):
            if table.rank == FAILED and kind == "messages":
                patch.setattr(Channel, "memory", raising(at, no_memory)(Channel.memory))
            try:
                getattr(table, call)(*given, **options)
            except CollectiveError as error:
                is_failed = True
                assert list(error.failures) == [FAILED] and error.failures[FAILED].startswith("MemoryError")
                rounds.append(error.rounds)
                has_begun = error.has_begun
        assert table.rank == FAILED or not engine.refused
        if not is_failed:
            if kind == "engine":
                return refused, rounds
            kind, at = "engine", 0
        refused, at = refused + is_failed, at + 1
        if verb == "add":
            if has_begun:
                table.local.check()
            else:
                check(table, 1 if is_failed else 2)
            continue
        again = getattr(table, call)(*given, **options)
        if verb == "find":
            assert (again[0] == 1).all() and again[1].all()
        check(table, n=0 if verb == "erase" else None)


@pytest.mark.parametrize("verb", ["insert", "first", "max", "add", "find", "erase", "hot"])
def test_memory_that_is_refused_at_each_allocation(ranks: Ranks, verb: str) -> None:
    made = ranks.run(refuse_each_allocation, verb)
    assert made[0] == made[1] == made[2]
    assert made[0][0] > 6, "messages and the engine"


def refuse_each_message(verb: str) -> int:
    """As `refuse_each_allocation`, of verbs with several trips, and of messages alone."""
    import torch.distributed as dist

    import warphash.distributed as distributed
    from warphash.distributed.channel import Channel
    from warphash.errors import CollectiveError

    for at in itertools.count(1):
        if verb == "find_all":
            table: Any = distributed.ShardedMultiMap("int64", "int32", piece_bytes=1_000)
            keys = mine(table)
            table.insert(np.repeat(keys, 3), np.arange(3 * N, dtype=np.int32))
        else:
            table = new_map()
            keys = mine(table)
        with pytest.MonkeyPatch.context() as patch:
            if table.rank == FAILED:
                patch.setattr(Channel, "memory", raising(at, no_memory)(Channel.memory))
            try:
                getattr(table, verb)(keys)
                is_failed = False
            except CollectiveError as error:
                assert list(error.failures) == [FAILED] and error.failures[FAILED].startswith("MemoryError")
                is_failed = True
        first, second = getattr(table, verb)(keys)
        if verb == "find_all":
            assert np.diff(second).tolist() == [3] * N
            assert sorted(first.tolist()) == list(range(3 * N))
        else:
            every: list[Any] = [None] * table.world
            dist.all_gather_object(every, first.tolist())
            assert sorted(itertools.chain(*every)) == list(range(N * table.world))
        if not is_failed:
            return at
    return 0


@pytest.mark.parametrize("verb", ["find_all", "number"])
def test_messages_that_are_refused_in_verbs_with_several_trips(ranks: Ranks, verb: str) -> None:
    made = ranks.run(refuse_each_message, verb)
    assert made[0] == made[1] == made[2] > 8


# ---- interrupts
def interrupt_a_call(when: str) -> tuple[bool, int]:
    from warphash import HashMap

    table = new_map()
    keys, ones = mine(table), np.ones(N, np.int64)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    was_interrupted = False
    try:
        if table.rank != FAILED:
            if when == "waiting":
                time.sleep(0.5)
            assert table.insert(keys, ones).all()
        elif when == "waiting":
            timer = threading.Timer(0.1, interrupt)
            timer.start()
            table.insert(keys, ones)
        else:
            with patched(HashMap, "insert", raising(1, interrupt)):
                table.insert(keys, ones)
    except KeyboardInterrupt:
        was_interrupted = True
    check(table)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return was_interrupted, table.total()


@pytest.mark.parametrize("when", ["waiting", "in a round"])
def test_an_interrupt_comes_out_when_the_call_has_ended(ranks: Ranks, when: str) -> None:
    made = ranks.run(interrupt_a_call, when)
    assert made == [(rank == FAILED, N * 3) for rank in range(3)]


# ---- groups
def make_groups_of_some_ranks() -> int:
    import torch.distributed as dist

    import warphash.distributed as distributed

    rank = dist.get_rank()
    for others in ([1, 2], [2]):  # so each rank is in another number of groups
        for _ in range(3):
            dist.new_group(others)
    total = 0
    for members in ([0, 2], [2, 1], [0, 1, 2]):
        group = dist.new_group(members)
        if rank in members:
            table = distributed.ShardedSet("int64", group=group)
            table.insert(np.arange(10) + 10 * table.rank)
            total += table.total()
    return total


def test_ranks_that_are_in_different_numbers_of_groups(ranks: Ranks) -> None:
    assert ranks.run(make_groups_of_some_ranks) == [20 + 30, 20 + 30, 20 + 20 + 30]


# ---- lost ranks
def lose_a_rank(how: str) -> list[str]:
    """The errors of the call in which a rank is lost, and of the two behind it."""
    from warphash import HashMap

    table = new_map()
    keys, ones = mine(table), np.ones(N, np.int64)
    table.insert(keys, ones)
    if table.rank == FAILED:
        if how == "exits":
            os._exit(3)
        if how == "is killed":
            HashMap.assign = raising(2, lambda: os.kill(os.getpid(), signal.SIGKILL))(HashMap.assign)  # type: ignore
        if how == "stops":
            subprocess.Popen(["sh", "-c", f"sleep {2 * TIMEOUT_S}; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)
        if how == "leaves a call out":
            time.sleep(2 * TIMEOUT_S)
    errors = []
    for call in (lambda: table.assign(keys, ones), lambda: table.find(keys), lambda: new_map()):
        try:
            call()
            errors.append("no error")
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors


@pytest.mark.parametrize("how", ["exits", "is killed", "stops", "leaves a call out"])
def test_a_rank_that_is_lost(how: str) -> None:
    pytest.importorskip("torch")
    with new_ranks(3, timeout_s=TIMEOUT_S) as ranks:
        made = ranks.outcomes(lose_a_rank, how)
        for rank, (errors, raised) in enumerate(made):
            if rank == FAILED and how in ("exits", "is killed"):
                assert raised == "the process ended"
                continue
            assert raised is None, raised
            assert errors[0].startswith("PeerLost: a rank of the group does not answer: "), errors
            assert all(each.startswith("PeerLost: a rank of this group was lost before (") for each in errors[1:])
