"""Numbers for strings: equal strings share one, others never do, whatever their hashes; and what room is made for."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from support.refusals import refusing
from warphash import get_num_threads, set_num_threads
from warphash.arrays.strings import ROW, StringArray, rows_of
from warphash.errors import TableFull
from warphash.runtime.devices import engine_for
from warphash.storage.strings import string_table
from warphash.storage.strings.string_table import NUMBER_BYTES, StringTable, packed

ENGINE = engine_for("cpu")
ALL_BITS = 2**64 - 1
NO_NUMBER = 2**32 - 1
NO_ACCESS = 0
"""PROT_NONE, which the module mmap does not have."""
WORDS = ["".join(letters) for n in range(4) for letters in product("ab\0é", repeat=n)]
"""Strings of 0 to 3 letters: they begin alike, end in zeros, and have the bytes of others in them."""


def intern(table: StringTable, items: Sequence[Any]) -> np.ndarray:
    return ask(table.intern, items)


def look_up(table: StringTable, items: Sequence[Any]) -> np.ndarray:
    return ask(table.look_up, items)


def ask(verb: Any, items: Sequence[Any]) -> np.ndarray:
    given = rows_of(list(items), True)
    numbers = np.empty(len(items), np.uint32)
    verb(given.rows.ctypes.data, len(items), numbers.ctypes.data)
    return numbers


def strings_of(table: StringTable, numbers: np.ndarray) -> list[Any]:
    rows = np.empty((len(numbers), 2), np.uint64)
    table.rows_of(numbers.ctypes.data, len(numbers), rows.ctypes.data)
    offsets, data, valid = packed(ENGINE, rows.ctypes.data, len(numbers))
    return StringArray(offsets, data, True, valid).tolist()


@pytest.mark.parametrize("mask", [ALL_BITS, 0, 1 << 63, 0xFF << 32], ids=["all", "none", "one", "eight"])
class TestAnyHash:
    """With a mask of the hash's bits: with none of them, all strings have one hash."""

    def test_equal_strings_have_one_number_and_others_another(self, mask: int) -> None:
        table = StringTable(ENGINE, 5, hash_mask=mask)
        given = WORDS * 3
        numbers = intern(table, given)
        assert len(set(numbers.tolist())) == table.used == len(WORDS)
        assert strings_of(table, numbers) == given
        assert (look_up(table, given) == numbers).all()
        assert (intern(table, given) == numbers).all() and table.used == len(WORDS)

    def test_a_string_that_is_not_there_has_none(self, mask: int) -> None:
        table = StringTable(ENGINE, 5, hash_mask=mask)
        intern(table, WORDS[1:])
        assert look_up(table, [WORDS[0], "abab", *WORDS[1:2]]).tolist()[:2] == [NO_NUMBER, NO_NUMBER]

    def test_a_null_is_no_empty_string(self, mask: int) -> None:
        table = StringTable(ENGINE, 5, hash_mask=mask)
        numbers = intern(table, [None, "", None, "a"])
        assert numbers[0] == numbers[2] and len(set(numbers.tolist())) == 3
        assert strings_of(table, numbers) == [None, "", None, "a"]

    def test_strings_that_are_not_kept_give_their_numbers_to_others(self, mask: int) -> None:
        table = StringTable(ENGINE, 5, hash_mask=mask)
        numbers = intern(table, [*WORDS, None])
        kept = np.ascontiguousarray(numbers[::3])
        table.keep(kept.ctypes.data, len(kept))
        held = [*WORDS, None][::3]
        assert table.used == len(kept) and strings_of(table, kept) == held
        assert (look_up(table, held) == kept).all()
        assert (look_up(table, [word for word in WORDS if word not in held]) == NO_NUMBER).all()
        again = intern(table, [*WORDS, None])
        assert sorted(again.tolist()) == sorted(numbers.tolist())
        assert strings_of(table, again) == [*WORDS, None]


@pytest.mark.parametrize("mask", [ALL_BITS, 0], ids=["all", "none"])
def test_every_byte_of_every_length_counts(mask: int) -> None:
    """A string, and those that differ from it in one byte, up to lengths beyond the words that are compared at once."""
    given = ["a" * length for length in range(120)]
    given += [
        f"{'a' * at}b{'a' * (length - at - 1)}" for length in range(0, 120, 1 if mask else 7) for at in range(length)
    ]
    table = StringTable(ENGINE, 5, hash_mask=mask)
    numbers = intern(table, given)
    assert len(set(numbers.tolist())) == table.used == len(given) and strings_of(table, numbers) == given
    assert (look_up(table, given) == numbers).all()


def test_a_string_may_end_where_memory_ends() -> None:
    """No byte before or behind a string is read: the pages there are not readable."""
    page = mmap.PAGESIZE
    held = mmap.mmap(-1, 3 * page)
    middle = ctypes.addressof(ctypes.c_char.from_buffer(held)) + page
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for guard in (middle - page, middle + page):
        assert protect(guard, page, NO_ACCESS) == 0
    rows = np.array([(at, n) for n in range(120) for at in (middle, middle + page - n)], ROW)
    for mask in (ALL_BITS, 0):
        table, numbers = StringTable(ENGINE, 5, hash_mask=mask), np.empty(len(rows), np.uint32)
        table.intern(rows.ctypes.data, len(rows), numbers.ctypes.data)
        assert table.used == 120 and (numbers[::2] == numbers[1::2]).all()
    for guard in (middle - page, middle + page):
        assert protect(guard, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0


def test_add_gives_the_new_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that no string had: first the numbers of strings that were not kept, and then higher ones."""
    monkeypatch.setattr(string_table, "PIECE", 7)
    table = StringTable(ENGINE, 5, 1000)
    first = intern(table, WORDS[:30])
    kept = np.ascontiguousarray(first[::2])
    table.keep(kept.ctypes.data, len(kept))
    held = set(kept.tolist())
    for items in ([], WORDS[:40:2], WORDS[10:35] * 2, WORDS[10:35], WORDS):
        rows = rows_of(list(items), True)
        new = table.add(rows.rows.ctypes.data, len(items)).tolist()
        assert not held & set(new) and len(set(new)) == len(new)
        held |= set(new)
        assert set(look_up(table, items).tolist()) <= held and table.used == len(held)
    assert held == set(range(len(WORDS))) and sorted(strings_of(table, look_up(table, WORDS))) == sorted(WORDS)


def test_tables_grow_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_table, "PIECE", 7)
    monkeypatch.setattr(string_table, "MOST_CHUNK", 1 << 13)
    table = StringTable(ENGINE, 1)
    given = [f"{'x' * (n % 50)}{n % 3000}" for n in range(10_000)]
    numbers = intern(table, given)
    assert table.used == len(set(given)) and strings_of(table, numbers) == given
    assert len(table._state.chunks) > 3


def test_threads_that_meet_at_one_string_agree() -> None:
    """Large enough for several threads, which all see the same strings; with strings of one hash, too."""
    rng = np.random.default_rng(3)
    given = [f"key {n}" for n in rng.integers(0, 500, 1 << 17)]
    before = get_num_threads()
    set_num_threads(4)
    try:
        for mask in (ALL_BITS, 0xF << 60):
            table = StringTable(ENGINE, 1, hash_mask=mask)
            numbers = intern(table, given)
            assert table.used == len(set(given)) and numbers.max() == table.used - 1
            assert strings_of(table, numbers) == given
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("distinct", [3, 1000, 9000], ids=str)
def test_strings_that_lie_at_one_address(distinct: int) -> None:
    """As of a column with a dictionary: few strings of large batches; with some that begin where others do."""
    words = rows_of([f"word {n}" for n in range(distinct)], True)
    held = np.concatenate([words.rows, words.rows[: distinct // 2]])
    held["length"][distinct:] -= 1  # the same address, and another string
    draw = np.random.default_rng(1).integers(0, len(held), 1 << 16)
    rows, items = held[draw], [f"word {n}" for n in range(distinct)] + [f"word {n}"[:-1] for n in range(distinct // 2)]
    expected = [items[number] for number in draw]
    table, numbers = StringTable(ENGINE, 1), np.empty(len(rows), np.uint32)
    for verb in (table.look_up, table.intern, table.look_up):
        verb(rows.ctypes.data, len(rows), numbers.ctypes.data)
        if table.used:
            assert strings_of(table, numbers) == expected and table.used == len(set(expected))
        else:
            assert (numbers == NO_NUMBER).all()


def test_many_threads_look_up_together() -> None:
    table = StringTable(ENGINE, 1)
    numbers, seen = intern(table, WORDS), []
    threads = [threading.Thread(target=lambda: seen.append(look_up(table, WORDS))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 and all((each == numbers).all() for each in seen)


def test_a_refused_allocation_leaves_all_strings_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_table, "PIECE", 16)
    refused = 0
    for first in range(1, 100):
        table = StringTable(ENGINE, 1)
        numbers = intern(table, WORDS[:20])
        with refusing(ENGINE, first) as count:
            try:
                intern(table, WORDS * 5)
            except MemoryError:
                refused += 1
        assert (look_up(table, WORDS[:20]) == numbers).all()
        assert strings_of(table, intern(table, WORDS)) == WORDS and table.used == len(WORDS)
        if not count.refused:
            break
    assert refused > 1


def test_a_string_is_copied() -> None:
    data = bytearray(b"abcdef")
    table = StringTable(ENGINE, 1)
    held = StringArray(np.array([0, 3, 6]), np.frombuffer(data, np.uint8), True)
    rows, numbers = held.rows.rows, np.empty(2, np.uint32)
    table.intern(rows.ctypes.data, 2, numbers.ctypes.data)
    data[:] = b"zzzzzz"
    assert strings_of(table, numbers) == ["abc", "def"]


def test_borrowed_strings_stay_where_they_are() -> None:
    held = StringArray(np.array([0, 3, 6, 9]), np.frombuffer(b"abcdefabc", np.uint8), True)
    rows, numbers = held.rows.rows, np.empty(3, np.uint32)
    table = StringTable(ENGINE, 1, borrows=True)
    table.intern(rows.ctypes.data, 3, numbers.ctypes.data)
    assert numbers[0] == numbers[2] and strings_of(table, numbers) == ["abc", "def", "abc"]
    borrowed = np.empty((2, 2), np.uint64)
    table.rows_of(np.unique(numbers).ctypes.data, 2, borrowed.ctypes.data)
    assert set(borrowed[:, 0].tolist()) == set(rows.view(np.uint64).reshape(-1, 2)[:2, 0].tolist())
    twin = table.copy(numbers.ctypes.data, 3)
    del table, held, rows
    assert strings_of(twin, numbers) == ["abc", "def", "abc"], "a copy has bytes of its own"


def test_numbers_run_out_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_table, "MOST_STRINGS", 50)
    table = StringTable(ENGINE, 1)
    intern(table, WORDS[:40])
    with pytest.raises(TableFull, match="at most 50 strings"):
        intern(table, WORDS[:20])
    assert len(set(look_up(table, WORDS[:40]).tolist())) == 40


def test_bytes_and_rows_are_counted() -> None:
    table = StringTable(ENGINE, 1)
    empty = table.nbytes
    intern(table, ["x" * 10_000])
    assert table.nbytes > empty + 10_000 and 0 <= table.reserve_nbytes < table.nbytes - 10_000
    assert NUMBER_BYTES == 4
