"""Rows by the hash of their keys: the one mechanism for what does not fit into memory.

Tables with key columns come in. As long as they fit into the share of memory of a call, they are held. Then they go to
one file for each of 32 parts, by bits of the words of their keys (`key_hash`). Rows with equal keys are in one part.
Then one part after the other is handled as all rows were, small ones together. If a part does not fit, the next bits of
the words divide it.

`folded` is for states that have one row for each distinct key: before anything is written, and in each part, rows with
equal keys become one. So a key with any number of rows fits. `whole` is for answers that need all rows of a key at
once; a key with too many of them is an error.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .key_hash import Form, Words, words_of
from .spill import SpillFile
from .workspace import Workspace

__all__ = ["Keys", "folded", "is_divisible", "joined_tables", "larger_tables", "partitioned", "whole"]

_PART_BITS = 5
_PARTS = 1 << _PART_BITS
_LEVELS = 64 // _PART_BITS
"""How often parts can be divided by bits of a word."""


class Keys(NamedTuple):
    """The key columns of tables.

    Attributes
    ----------
    names
        Of the columns.
    forms
        As of `key_hash.forms_of`.
    """

    names: list[str]
    forms: list[Form]

    def words(self, table: Any) -> Words:
        """The words of a table's rows."""
        return words_of([table[name] for name in self.names], self.forms)


Fold = Callable[[Any], Any]
"""Makes one row of the rows of a table with equal keys. What it is made of may be rows that it made."""


def folded(tables: Iterable[Any], fold: Fold, keys: Keys, work: Workspace, level: int = 0) -> Iterator[Any]:
    """Fold rows with equal keys, part by part.

    Parameters
    ----------
    tables
        Of one schema, that of what ``fold`` makes.

    Yields
    ------
    table
        One row for each key. No two tables have a key in common. If there is just one table, nothing was written.

    Raises
    ------
    MemoryError
        If the keys of a part cannot be divided, or if there is no room on the disk.
    """
    held: list[Any] = []
    size, source = 0, iter(tables)
    for table in source:
        held.append(table)
        size += table.nbytes
        if size < work.share:
            continue
        state = fold(joined_tables(held))
        if 2 * state.nbytes < work.share:
            held, size = [state], state.nbytes
            continue
        held = []
        _check_divisible(state, keys, work, level)
        rows = itertools.chain([state], source)
        del state
        for parts in _together(partitioned(rows, keys, work, level), work.share):
            yield from folded(_read_once(parts), fold, keys, work, level + 1)
        return
    if held:
        yield fold(joined_tables(held))


def whole(tables: Iterable[Any], keys: Keys, work: Workspace, level: int = 0) -> Iterator[Any]:
    """Tables with all rows of their keys each, part by part. The rows of a key are in the order in which they came.

    Raises
    ------
    MemoryError
        If the rows of one key do not fit into the share of memory, or if there is no room on the disk.
    """
    held: list[Any] = []
    size, source = 0, iter(tables)
    for table in source:
        held.append(table)
        size += table.nbytes
        if size >= work.share:
            break
    if size < work.share:
        if held:
            yield joined_tables(held)
        return
    first = joined_tables(held)
    held.clear()
    _check_divisible(first, keys, work, level)
    rows = itertools.chain([first], source)
    del first
    for parts in _together(partitioned(rows, keys, work, level), work.share):
        yield from whole(_read_once(parts), keys, work, level + 1)


def partitioned(
    tables: Iterable[Any],
    keys: Keys,
    work: Workspace,
    level: int,
    seen: Callable[[Words], object] = lambda words: None,
) -> list[SpillFile]:
    """Write tables to a file for each part.

    Parameters
    ----------
    seen
        Called with the words of rows as they go by.

    Raises
    ------
    MemoryError
        If there is no room on the disk.
    """
    files = [work.spill.file() for _ in range(_PARTS)]
    for table in larger_tables(tables, work.share):
        words = keys.words(table)
        seen(words)
        _write_parts(table, words, level, files)
    for file in files:
        file.finish()
    return files


def is_divisible(table: Any, keys: Keys, level: int) -> bool:
    """Whether partitions from some level on divide the rows of a table."""
    words = keys.words(table)
    return level < _LEVELS and bool(words.min() < words.max())


def larger_tables(tables: Iterable[Any], nbytes: int, rows: int | None = None) -> Iterator[Any]:
    """Tables of about so many bytes, or rows if these are fewer, of smaller ones."""
    held: list[Any] = []
    size = length = 0
    for table in tables:
        held.append(table)
        size += table.nbytes
        length += len(table)
        if size >= nbytes or (rows is not None and length >= rows):
            yield joined_tables(held)
            held, size, length = [], 0, 0
    if held:
        yield joined_tables(held)


def joined_tables(tables: Sequence[Any]) -> Any:
    """Tables one behind the other."""
    import pyarrow as arrow

    return tables[0] if len(tables) == 1 else arrow.concat_tables(tables)


def _write_parts(table: Any, words: Words, level: int, files: Sequence[SpillFile]) -> None:
    shift = np.uint64(64 - _PART_BITS * (level + 1))
    parts = ((words >> shift) & np.uint64(_PARTS - 1)).astype(np.uint8)
    order = np.argsort(parts, kind="stable")
    ends = np.bincount(parts, minlength=_PARTS).cumsum()
    moved = table.combine_chunks().take(order)
    begin = 0
    for file, end in zip(files, ends.tolist(), strict=True):
        file.write(moved.slice(begin, end - begin))
        begin = end


def _check_divisible(table: Any, keys: Keys, work: Workspace, level: int) -> None:
    if not is_divisible(table, keys, level):
        raise MemoryError(
            "rows with one key, or with keys that no hash tells apart, take more than "
            f"{work.share:,} bytes, the part of memory={work.memory:,} that is for rows: give more memory="
        )


def _together(files: Iterable[SpillFile], nbytes: int) -> Iterator[list[SpillFile]]:
    """Parts, those that follow each other together as long as they take less than so many bytes."""
    held: list[SpillFile] = []
    size = 0
    for file in files:
        if held and size + file.nbytes >= nbytes:
            yield held
            held, size = [], 0
        held.append(file)
        size += file.nbytes
    if held:
        yield held


def _read_once(files: Iterable[SpillFile]) -> Iterator[Any]:
    for file in files:
        yield from file.read()
        file.remove()
