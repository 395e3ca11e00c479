"""Words on a GPU, and the first element of each, beside a dict of Python's."""

from __future__ import annotations

import numpy as np
import pytest

from support.engines import one_of_each
from support.refusals import refusing
from warphash.runtime.devices import engine_for
from warphash.settings import ORDER_VARIABLE
from warphash.storage.groups import first_elements
from warphash.storage.groups.device_places import DevicePlaces

GPUS = one_of_each("emulated", "cuda")
BYTES = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def found(device: str, held: np.ndarray, asked: np.ndarray, out: str = "i8") -> tuple[bool, list[int]]:
    """Whether the words are unique, and the place of each that is asked for."""
    engine = engine_for(device)
    kept, sought = (engine.from_host(np.append(words, words[:1])) for words in (held, asked))
    made = DevicePlaces(engine, kept.ptr, held.itemsize, len(held), None)
    answers = engine.allocate(max(1, np.dtype(out).itemsize * len(asked)))
    made.find(sought.ptr, len(asked), answers.ptr, np.dtype(out).itemsize, None)
    return made.is_unique, engine.to_host(answers.ptr, out, len(asked)).tolist()


def firsts_of(held: np.ndarray) -> dict[int, int]:
    firsts: dict[int, int] = {}
    for element, word in enumerate(held.tolist()):
        firsts.setdefault(word, element)
    return firsts


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("out", ["i4", "i8"])
@pytest.mark.parametrize("width", BYTES)
@pytest.mark.parametrize("n", [0, 1, 5, 700, 9_000])
@pytest.mark.parametrize("repeats", [False, True])
def test_first_elements(device: str, width: int, n: int, repeats: bool, out: str) -> None:
    random, dtype = np.random.default_rng(n + width), np.dtype(BYTES[width])
    top = int(np.iinfo(dtype).max)
    n = min(n, top) if not repeats else n
    held = random.permutation(min(top, 2 * n + 1)).astype(dtype)[:n]
    held = np.resize(held[: 1 + n // 3], n) if repeats else held
    asked = np.concatenate([held, random.integers(0, top, 300, dtype), np.array([0, top], dtype)])
    firsts = firsts_of(held)
    is_unique, places = found(device, held, asked, out)
    assert is_unique == (len(firsts) == n)
    assert places == [firsts.get(word, -1) for word in asked.tolist()]


@pytest.mark.parametrize("device", GPUS)
@pytest.mark.parametrize("held", [[2**64 - 1], [3, 2**64 - 1, 4], [2**64 - 1, 3, 2**64 - 1], [3, 4]], ids=str)
def test_the_word_of_a_vacant_cell(device: str, held: list[int]) -> None:
    words = np.array(held, "u8")
    firsts = firsts_of(words)
    expected = [firsts.get(word, -1) for word in (2**64 - 1, 3, 5)]
    assert found(device, words, np.array([2**64 - 1, 3, 5], "u8")) == (len(firsts) == len(held), expected)


@pytest.mark.parametrize("device", GPUS)
def test_cells_of_too_few_words_are_enlarged(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_elements, "expected_keys", lambda *_: 1)
    monkeypatch.setattr("warphash.storage.groups.device_places.expected_keys", lambda *_: 1)
    held = np.random.default_rng(3).permutation(3_000).astype("u8")
    assert found(device, held, held) == (True, list(range(3_000)))


@pytest.mark.parametrize("device", GPUS)
def test_words_that_are_claimed_part_by_part(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ORDER_VARIABLE, "parts")
    held = np.random.default_rng(4).permutation(9_000).astype("u8") * 7
    assert found(device, held, held) == (True, list(range(9_000)))


@pytest.mark.parametrize("device", GPUS)
def test_words_that_plainly_repeat_are_not_kept(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_for(device)
    monkeypatch.setattr(engine, "window_bytes", 0)
    given = engine.from_host(np.resize(np.arange(100, dtype="u8"), 20_000))
    assert not DevicePlaces(engine, given.ptr, 8, 20_000, None, if_unique=True).is_unique


@pytest.mark.parametrize("device", GPUS)
def test_refused_memory_is_an_error(device: str) -> None:
    engine = engine_for(device)
    given = engine.from_host(np.arange(300, dtype="u2"))
    for first in (1, 2, 3):
        with refusing(engine, first), pytest.raises(MemoryError):
            DevicePlaces(engine, given.ptr, 2, 300, None)
