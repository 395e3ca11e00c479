"""`exchange`: equal keys of all ranks meet on one rank, with their rows, and answers go back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from .batches import KEYS, SIZES, keys_of, plain
from .ranks import Ranks


def go_and_return(kind: str, sizes: tuple[int, ...], heavy: bool, library: str) -> tuple[Any, ...]:
    """Exchange keys, and bring an answer for each row back, which is compared here."""
    import torch
    import torch.distributed as dist

    import warphash.distributed as wd

    def given(array: Any) -> Any:
        return torch.from_numpy(array) if library == "torch" else array

    rank = dist.get_rank()
    mine = keys_of(kind, sizes, 3, heavy=heavy)[rank]
    rows, wide = np.arange(len(mine)), np.full((len(mine), 2), rank, np.float32)
    arrived = wd.exchange(given(mine), given(rows), given(wide))
    assert type(arrived.keys) is type(arrived.columns[0]) is type(given(mine))
    assert arrived.columns[0].dtype == given(rows).dtype
    assert arrived.columns[1].shape == (len(arrived), 2)
    assert np.array_equal(np.asarray(arrived.columns[1])[:, 0], arrived.ranks)
    answers = given(np.asarray(arrived.columns[0]) * 10 + arrived.ranks)
    back = arrived.back(answers)
    assert type(back) is type(answers)
    assert np.array_equal(np.asarray(back), rows * 10 + rank)
    return plain(arrived.keys), arrived.ranks.tolist(), np.asarray(arrived.columns[0]).tolist()


@pytest.mark.parametrize("sizes", SIZES.values(), ids=list(SIZES))
@pytest.mark.parametrize("kind", KEYS)
def test_equal_keys_meet_on_one_rank(ranks: Ranks, kind: str, sizes: tuple[int, ...]) -> None:
    batches = [plain(keys) for keys in keys_of(kind, sizes, 3)]
    library = "numpy" if kind == "S" else "torch"
    made = ranks.run(go_and_return, kind, sizes, False, library)
    owners = [set(keys) for keys, _, _ in made]
    assert sum(map(len, owners)) == len(set().union(*owners))
    for keys, sources, rows in made:
        assert keys == [batches[source][row] for source, row in zip(sources, rows, strict=True)]
        assert list(zip(sources, rows, strict=True)) == sorted(zip(sources, rows, strict=True))
    assert Counter(key for keys, _, _ in made for key in keys) == Counter(key for batch in batches for key in batch)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_heavy_key_goes_to_its_owner(ranks: Ranks, library: str) -> None:
    made = ranks.run(go_and_return, "int64", (900, 0, 300), True, library)
    assert max(len(keys) for keys, _, _ in made) > 1_000


def test_a_tuple_of_arrays_has_keys_of_several_columns(ranks: Ranks) -> None:
    first, second = np.array([1, 2, 2, 1]), np.array([0.0, np.nan, np.nan, -0.0])
    owners = ranks.run(counts_of_tuples, [first, second])
    assert sorted(map(sum, owners)) == [0, 0, 12] or sorted(map(sum, owners)) == [0, 6, 6]


def counts_of_tuples(columns: list[Any]) -> list[int]:
    import warphash.distributed as wd

    arrived = wd.exchange(tuple(columns))
    assert [type(column) for column in arrived.keys] == [np.ndarray, np.ndarray]
    return arrived.counts


def wrong(case: str) -> str:
    """What is raised, if a rank gives something wrong; the call after that works."""
    import torch.distributed as dist

    import warphash
    import warphash.distributed as wd

    keys, columns = np.arange(4), [np.arange(4)]
    if dist.get_rank() == 1:
        if case == "length":
            columns = [np.arange(3)]
        elif case == "type":
            keys = keys.astype(np.int32)
        else:
            keys = np.array(["a", None, "b", "c"], object)
    try:
        wd.exchange(keys, *columns)
    except warphash.CollectiveError as error:
        assert len(wd.exchange(np.arange(5)).counts) == 3
        return str(error)
    return "nothing"


@pytest.mark.parametrize(
    ("fault", "said"), [("length", "as many rows"), ("type", "rank 1: int32"), ("objects", "items of one width")]
)
def test_what_one_rank_gives_wrong_all_ranks_hear(ranks: Ranks, fault: str, said: str) -> None:
    texts = ranks.run(wrong, fault)
    assert len(set(texts)) == 1
    assert said in texts[0]


def wrong_answers() -> str:
    import torch.distributed as dist

    import warphash
    import warphash.distributed as wd

    arrived = wd.exchange(np.arange(30))
    try:
        arrived.back(np.zeros(len(arrived) + (dist.get_rank() == 2)))
    except warphash.CollectiveError as error:
        assert arrived.back(arrived.keys).tolist() == list(range(30))
        return str(error)
    return "nothing"


def test_answers_have_a_row_for_each_row_received(ranks: Ranks) -> None:
    texts = ranks.run(wrong_answers)
    assert len(set(texts)) == 1
    assert "failed on rank 2" in texts[0]


VERBS = ("exchange", "back", "unique", "isin", "group_by", "join", "gathered join")


def without_memory(verb: str) -> list[str]:
    """What is raised where one rank has no memory for messages, at each place in turn; the last call works."""
    import torch.distributed as dist

    import warphash
    import warphash.distributed as wd
    from warphash.distributed.channel import Channel

    keys = np.arange(60) % 13
    arrived = wd.exchange(keys)
    verbs = {
        "exchange": lambda: wd.exchange(keys, keys),
        "back": lambda: arrived.back(arrived.keys),
        "unique": lambda: wd.unique(keys, return_counts=True),
        "isin": lambda: wd.isin(keys, keys),
        "group_by": lambda: wd.group_by(keys).sum(keys),
        "join": lambda: wd.join(keys, keys, small_bytes=0),
        "gathered join": lambda: wd.join(keys, keys, "outer"),
    }
    allocate, said = Channel.memory, list[str]()
    while True:
        left = len(said)

        def memory(self: Channel, nbytes: int) -> Any:
            nonlocal left
            left -= 1
            if left == -1 and dist.get_rank() == 1:
                raise MemoryError("no room")
            return allocate(self, nbytes)

        Channel.memory = memory  # type: ignore[method-assign]
        try:
            verbs[verb]()
        except warphash.CollectiveError as error:
            said.append(str(error))
        else:
            return said
        finally:
            Channel.memory = allocate  # type: ignore[method-assign]


@pytest.mark.parametrize("verb", VERBS)
def test_without_memory_on_one_rank_all_raise(ranks: Ranks, verb: str) -> None:
    made = ranks.run(without_memory, verb)
    assert made[0] == made[1] == made[2]
    assert len(made[0]) >= 2
    assert all("failed on rank 1: MemoryError: no room" in text for text in made[0])


def arrays_of_all_types() -> list[Any]:
    """Arrays of eight rows, of which those four apart are equal."""
    import torch

    numbers = np.arange(8) % 4
    names = ("int8", "int16", "uint16", "uint32", "uint64", "float16", "bfloat16", "complex64", "float64")
    made: list[Any] = [torch.from_numpy(numbers).to(getattr(torch, name)) for name in names]
    made += [torch.from_numpy(numbers % 2 == 0), torch.from_numpy(np.stack([numbers, numbers], 1)).to(torch.bfloat16)]
    made += [numbers.astype(name) for name in ("bool", "datetime64[s]", "U3", "longdouble", ">i4")]
    made += [np.stack([numbers] * 6, 1).reshape(8, 2, 3), numbers.astype([("a", "i4"), ("b", "f8")])]
    made += [np.arange(24)[::3] % 4, np.broadcast_to(np.int32(7), 8), [0, 1, 2, 3] * 2]
    return made


def types_that_fail() -> list[str]:
    import warphash.distributed as wd

    said = []
    for array in arrays_of_all_types():
        try:
            arrived = wd.exchange(array, array, np.arange(8))
            back = arrived.back(arrived.columns[0])
            plain = np.asarray(array) if isinstance(array, list) else array
            native = plain.dtype.newbyteorder("=") if isinstance(plain, np.ndarray) else plain.dtype
            assert back.dtype == native
            assert bool((back == plain).all())
            assert bool((arrived.keys == arrived.columns[0]).all())
            owners: dict[Any, set[Any]] = {}
            for row in arrived.columns[1].tolist():
                owners.setdefault(row % 4, set()).add(row)
            assert all(len(rows) == 2 for rows in owners.values())
        except Exception as error:
            said.append(f"{getattr(array, 'dtype', 'list')}: {type(error).__name__}: {error}")
    return said


def test_rows_of_all_types_travel(ranks: Ranks) -> None:
    assert ranks.run(types_that_fail) == [[], [], []]
