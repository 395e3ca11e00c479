"""Checkpoints of sharded tables: a folder that holds one whole checkpoint, the old one or the new one.

Layout of the folder
    manifest.json             what the checkpoint is, and which files it has
    <token>-<rank>-keys       the keys of a rank that saved, packed rows, shard by shard
    <token>-<rank>-values     their values, if the table has values
    <token>-<rank>-ranks      uint64, if the table is bounded and ranks its keys

Keys or values of any length have a file more, ``-keys_lengths`` or ``-values_lengths``: the length of each row, int64,
-1 of a null. Their own file has the bytes of the rows, one behind the other. Keys of several columns are rows of one
form (``storage/strings/packed_rows.py``), of a fixed width or of any length.

The token is random, another one for each save. Other files in the folder are left alone.

Layout of the manifest
    {"sha256": digest of the text of "checkpoint", as JSON with sorted keys, in ASCII, without spaces
     "checkpoint":
        {"format": "warphash checkpoint", "version": 1,
         "token": 16 hexadecimal digits,
         "owner_hash": "murmur3-64", "shards": 4096, "shards_of_a_block": 16,
         "note": what the caller gave,
         "table": the header of a saved table (`table.archive`), of all ranks together,
         "parts": [one for each rank that saved, in order:
            {"counts": [rows of each shard of the rank],
             "nbytes": {"keys": [bytes of the rows of each shard]}, for columns of any length alone,
             "digests": {"keys": [SHA-256 of each block], ...}}]}}

A block is the rows of 16 shards in one file: of shards 0 to 15, 16 to 31 and so on. A rank may own a part of 16 shards;
then the first or the last block of its file is shorter. Why blocks have digests, and not files: a rank that reads some
of the shards of a file can check what it reads. It reads at most 30 shards that it does not own. The text is about
34 KB for the blocks of a column.

Protocol of a save
1. Each rank brings the rows of its table into the order of shards. All ranks hear whether that worked.
2. Rank 0 chooses the token. Each rank writes its files and syncs them to the disk, with the folder.
3. All ranks vote (`Call.conclude`). If one failed, nothing has changed but that there are files of no checkpoint.
4. Rank 0 looks whether all files are there, and replaces the manifest (`atomic_file`). This is the moment from which on
   the folder holds the new checkpoint.
5. Rank 0 removes all files of checkpoints that the manifest in the folder does not name, also of saves that were killed
   or failed. All ranks hear whether steps 4 and 5 worked.

A load reads what a rank owns, at its places in the files. It checks the digest of each block and the shard of each key.
The files are read, and not mapped: if a mapped file is cut meanwhile, the process dies.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays.row_type import Column
from ..arrays.strings import StringRows
from ..atomic_file import replace, sync_folder
from ..errors import CollectiveError, CorruptFile, ParameterError, PathError, is_lack_of_room, refused_by_system
from ..storage.owners.owner_order import SHARDS
from ..table import archive, copies
from ..table.base import BaseTable
from ..table.column_file import shown
from ..table.copies import TableContents
from ..table.scans import RANKS
from .channel import Call, Channel
from .shard_order import (
    OWNER_HASH,
    ShardOrder,
    Stored,
    columns_of,
    contents_of,
    named_types,
    owned,
    shard_counts,
    stored_types,
    widths_of,
)

__all__ = ["load", "save"]

_MANIFEST = "manifest.json"
_BLOCK = 16
"""Shards whose rows have one digest."""

_FORMAT = {
    "format": "warphash checkpoint",
    "version": 1,
    "owner_hash": OWNER_HASH,
    "shards": SHARDS,
    "shards_of_a_block": _BLOCK,
}
"""What all manifests of this version say."""

_DATA_FILE = re.compile(r"([0-9a-f]{16})-[0-9]+-((keys|values)(_lengths)?|ranks)")
_MEND = "give a path on another disk"

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Part:
    """What one rank has saved.

    Attributes
    ----------
    rank
        Of those that saved.
    first, end
        Its shards.
    counts
        Rows of each of its shards.
    nbytes
        For each column of any length, the bytes of the rows of each shard.
    digests
        For each column, of each block.
    """

    rank: int
    first: int
    end: int
    counts: list[int]
    nbytes: dict[str, list[int]]
    digests: dict[str, list[str]]

    def places(self, name: str, width: int | None) -> list[int]:
        """Where each shard begins in the file of a column with rows of some width, and where the last one ends."""
        sizes = self.nbytes[name] if width is None else [count * width for count in self.counts]
        return list(accumulate(sizes, initial=0))


@dataclass(frozen=True)
class _Manifest:
    """What a checkpoint is.

    Attributes
    ----------
    note
        What the caller of the save gave.
    header
        Of a saved table, with the rows and the capacity of all ranks together.
    """

    token: str
    note: Any
    header: dict[str, Any]
    parts: list[_Part]

    def path(self, folder: Path, part: _Part, column: str) -> Path:
        """The file of a column of a part."""
        return folder / f"{self.token}-{part.rank}-{column}"

    @cached_property
    def types(self) -> dict[str, Column]:
        """The columns, by their names. Raises as `archive.table_of` and `archive.stored_columns`."""
        stored = archive.stored_columns(archive.table_of(self.header, self.header["kind"]))
        has_ranks = len(self.header["columns"]) > len(stored)
        return named_types([*stored, *[RANKS] * has_ranks], has_values=len(stored) > 1)

    @cached_property
    def widths(self) -> dict[str, int | None]:
        """The bytes of a row in each of the files of a rank, None for rows of any length."""
        return widths_of(self.types)


# ---- saving
def _note_text(note: Any) -> str:
    """A note as JSON. Raises `ParameterError` if it is none."""
    try:
        return json.dumps(note, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(
            f"a note must be what JSON can hold, got {shown(note)} ({error}): give text or numbers"
        ) from None


def save(channel: Channel, call: Call, path: str | os.PathLike[str], local: BaseTable[Any], note: Any) -> None:
    """Replace the checkpoint in a folder. Of a call that is announced here.

    Raises
    ------
    CollectiveError
        If a rank fails. The folder holds the old checkpoint, unless the disk failed behind step 4.
    PeerLost
        If a rank does not answer. The folder holds the old checkpoint or the new one.
    """
    folder, text = Path(path), _note_text(note)
    local._parts.facts.need("save")
    held = local._parts.copies.contents()
    columns = columns_of(held)
    options = {name: option for name, option in held.description.items() if name not in ("key", "value")}
    types = [archive.type_in_header(column) for column in stored_types(local).values()]
    header = archive.header_of(options, types, len(held.keys))
    order = ShardOrder(held.keys, channel.rank, channel.world)
    nbytes = {name: order.nbytes(column) for name, column in columns.items() if isinstance(column, StringRows)}
    call.agree()
    tokens, notes = zip(*call.told((secrets.token_hex(8), text)), strict=True)
    if len(set(notes)) > 1:
        raise CollectiveError(
            f"all ranks must save one note, got {', '.join(map(shown, notes))}", dict(enumerate(notes))
        )
    token = tokens[0]
    error: BaseException | None = None
    digests: dict[str, list[str]] = {}
    try:
        _make_folder(folder)
        for name, column in columns.items():
            digests[name] = _write_column(folder / f"{token}-{channel.rank}-{name}", column, order)
        sync_folder(folder)
    except BaseException as raised:
        error = _told_of(raised, folder)
    try:
        call.conclude(error, 0)
        told = call.told((header, order.counts, nbytes, digests))
    except CollectiveError:
        if channel.rank == 0:
            _sweep(folder)
        raise
    if channel.rank == 0:
        try:
            _replace_manifest(folder, _manifest_of(token, note, told))
        except BaseException as raised:
            error = _told_of(raised, folder)
        _sweep(folder, None if error is None else token)
    call.conclude(error, 0)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused_by_system(error, f"making the folder {folder}", "give the path of a folder") from None


def _told_of(error: BaseException, folder: Path) -> BaseException:
    """An error as a call has it: one of the system in words of ours."""
    if isinstance(error, OSError) and not isinstance(error, PathError):
        return refused_by_system(error, f"writing files in {folder}", _MEND)
    return error


def _write_column(target: Path, column: Stored, order: ShardOrder) -> list[str]:
    """Write the file of a column. The digests of its blocks."""
    digests = []
    with target.open("xb") as file:
        for first, end in _blocks(order.first, order.end):
            rows = order.rows(column, first, end).data
            digests.append(hashlib.sha256(rows).hexdigest())
            file.write(rows)
        file.flush()
        os.fsync(file.fileno())
    return digests


def _blocks(first: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans of shards that are blocks, in a file with some shards."""
    while first < end:
        behind = min(end, first - first % _BLOCK + _BLOCK)
        yield first, behind
        first = behind


_Told = tuple[dict[str, Any], list[int], dict[str, list[int]], dict[str, list[str]]]
"""Of a rank: the header of its table, its counts, its bytes, and its digests."""


def _manifest_of(token: str, note: Any, told: list[_Told]) -> _Manifest:
    """The manifest of what all ranks have told."""
    headers = [header for header, *_ in told]
    totals = {name: sum(header[name] for header in headers) for name in ("capacity", "count")}
    parts = []
    for rank, (_, counts, nbytes, digests) in enumerate(told):
        parts.append(_Part(rank, *owned(rank, len(told)), counts, nbytes, digests))
    return _Manifest(token, note, {**headers[0], **totals}, parts)


def _replace_manifest(folder: Path, manifest: _Manifest) -> None:
    for part in manifest.parts:
        for name, width in manifest.widths.items():
            _check_size(manifest.path(folder, part, name), part.places(name, width)[-1])
    parts = [
        {"counts": part.counts, "digests": part.digests, **({"nbytes": part.nbytes} if part.nbytes else {})}
        for part in manifest.parts
    ]
    about = {**_FORMAT, "token": manifest.token, "note": manifest.note, "table": manifest.header, "parts": parts}
    about = json.loads(json.dumps(about))  # as it is read again: the keys of all objects are text
    text = json.dumps({"sha256": _digest_of(about), "checkpoint": about})
    replace(folder / _MANIFEST, lambda file: file.write(text.encode()))


def _digest_of(about: Any) -> str:
    text = json.dumps(about, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _sweep(folder: Path, unsure: str | None = None) -> None:
    """Remove the files of all checkpoints but of the one that the manifest names. Errors leave files for the next save.

    If the manifest names the checkpoint ``unsure``, nothing is removed: it may not be on the disk yet.
    """
    with suppress(OSError, MemoryError, CorruptFile):
        try:
            kept = _read_manifest(folder).token
        except PathError:
            kept = ""
        if kept == unsure:
            return
        with os.scandir(folder) as entries:
            for entry in entries:
                found = _DATA_FILE.fullmatch(entry.name)
                if found and found[1] != kept:
                    with suppress(OSError):
                        Path(entry.path).unlink()


# ---- loading
def load(channel: Channel, call: Call, path: str | os.PathLike[str], table: type[BaseTable[Any]]) -> tuple[Any, Any]:
    """The table of this rank from a checkpoint of any number of ranks, and the note. Of a call that is announced here.

    Raises
    ------
    CollectiveError
        If a rank fails, or ranks read different checkpoints.
    PeerLost
        If a rank does not answer.
    """
    folder = Path(path)
    manifest = _read_manifest(folder)
    held = _contents(folder, manifest, table, *owned(channel.rank, channel.world))
    held.description["capacity"] = -(-held.description["capacity"] // channel.world)
    local = copies.loaded(folder, held, lambda: table._rebuilt(held, channel.device, unique=False))
    call.agree()
    tokens = call.told(manifest.token)
    if len(set(tokens)) > 1:
        raise CollectiveError(
            f"{folder} was saved anew while it was loaded, or is not one folder for all ranks: the ranks read the "
            f"checkpoints {', '.join(tokens)}; load it again",
            dict(enumerate(tokens)),
        )
    return local, manifest.note


def _read_manifest(folder: Path) -> _Manifest:
    """The manifest of a folder.

    Raises
    ------
    PathError
        If there is none.
    CorruptFile
        If it is damaged, or of another version.
    """
    path = folder / _MANIFEST
    try:
        raw = path.read_bytes()
    except OSError as error:
        if is_lack_of_room(error):
            raise MemoryError(f"there is no room for reading {path} ({error.strerror})") from None
        raise PathError(
            f"{folder} has no checkpoint that can be read ({error.strerror}): save one there first"
        ) from None
    try:
        whole = json.loads(raw)
        about = whole["checkpoint"]
        if whole["sha256"] != _digest_of(about):
            raise ValueError("it does not match its digest; it is truncated or altered")
        for name, expected in _FORMAT.items():
            if about[name] != expected:
                raise ValueError(f"{name} must be {expected!r} for this version of warphash, got {shown(about[name])}")
        return _checked(about)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise CorruptFile(f"{path} is no manifest of a checkpoint: {error}") from None


def _checked(about: dict[str, Any]) -> _Manifest:
    """The manifest of JSON that has the right digest. Raises a built-in error that says what is wrong."""
    described, parts = about["parts"], []
    for rank, each in enumerate(described):
        first, end = owned(rank, len(described))
        part = _Part(rank, first, end, each["counts"], each.get("nbytes", {}), each["digests"])
        for what, counts in (("rows", part.counts), *(("bytes", counts) for counts in part.nbytes.values())):
            if len(counts) != end - first or any(type(count) is not int or count < 0 for count in counts):
                raise ValueError(f"part {rank} must count the {what} of {end - first} shards, got {shown(counts)}")
        parts.append(part)
    manifest = _Manifest(about["token"], about["note"], about["table"], parts)
    if not re.fullmatch("[0-9a-f]{16}", manifest.token):
        raise ValueError(f"a token has 16 hexadecimal digits, got {shown(manifest.token)}")
    if (total := sum(sum(part.counts) for part in parts)) != manifest.header["count"]:
        raise ValueError(f"the parts have {total:,} rows, and the table {shown(manifest.header['count'])}")
    for part in parts:
        blocks = len(list(_blocks(part.first, part.end)))
        if {name: len(each) for name, each in part.digests.items()} != dict.fromkeys(manifest.widths, blocks):
            raise ValueError(f"part {part.rank} must have the digests of {blocks} blocks for each column")
        if part.nbytes.keys() != {name for name, width in manifest.widths.items() if width is None}:
            raise ValueError(f"part {part.rank} must have the bytes of columns of any length, and no others")
    return manifest


def _contents(folder: Path, manifest: _Manifest, table: type[BaseTable[Any]], first: int, end: int) -> TableContents:
    """The rows of some shards, and the description of the table of all.

    Raises
    ------
    CorruptFile
        If a file is missing, cut, altered, or has other rows than the manifest says; or for another class of table.
    """
    try:
        description = archive.table_of(manifest.header, table.__name__)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CorruptFile(f"{folder} holds no {table.__name__}: {error}") from None
    columns = {name: _column(folder, manifest, name, first, end).data for name in manifest.widths}
    counts = [count for part in manifest.parts for count in part.counts]
    try:
        held = contents_of(description, manifest.types, columns)
    except ValueError as error:
        raise CorruptFile(f"{folder} has no rows as its manifest says: {error}") from None
    if (shard_counts(held.keys)[first:end] != counts[first:end]).any():
        raise CorruptFile(f"{folder} has keys that are not of the shards that its manifest says: save it anew")
    return held


def _column(folder: Path, manifest: _Manifest, name: str, first: int, end: int) -> Bytes:
    """The bytes of some shards of one column, from the files of all ranks that have some of them."""
    width = manifest.widths[name]
    places = [(part, part.places(name, width)) for part in manifest.parts if part.first < end and first < part.end]
    spans = [_span(part, at, first, end) for part, at in places]
    made, done = np.empty(sum(stop - begin for begin, stop in spans), np.uint8), 0
    for part, at in places:
        path = manifest.path(folder, part, name)
        _check_size(path, at[-1])
        try:
            with path.open("rb") as file:
                done = _read_shards(file, path, part, name, at, (first, end), made, done)
        except OSError as error:
            if isinstance(error, PathError) or not is_lack_of_room(error):
                raise CorruptFile(f"{path} cannot be read ({error.strerror}): save the table anew") from None
            raise MemoryError(f"there is no room for reading {path} ({error.strerror})") from None
    return made


def _span(part: _Part, places: list[int], first: int, end: int) -> tuple[int, int]:
    """Where the bytes of some shards lie in a file: of those that the part has."""
    begin, stop = (min(max(shard, part.first), part.end) - part.first for shard in (first, end))
    return places[begin], places[stop]


def _read_shards(
    file: BufferedReader,
    path: Path,
    part: _Part,
    name: str,
    places: list[int],
    wanted: tuple[int, int],
    made: Bytes,
    at: int,
) -> int:
    """Read the wanted shards of a file to a place, and check the blocks that they are in. Returns the next place."""
    for number, (first, end) in enumerate(_blocks(part.first, part.end)):
        if not (first < wanted[1] and wanted[0] < end):
            continue
        begin, stop = _span(part, places, first, end)
        block = np.empty(stop - begin, np.uint8)
        file.seek(begin)
        if (
            file.readinto(block.data) != len(block)
            or hashlib.sha256(block.data).hexdigest() != part.digests[name][number]
        ):
            raise CorruptFile(
                f"{path} is truncated or altered: its bytes {begin:,} to {stop:,} do not match their digest; save the "
                "table anew, or load an older checkpoint"
            )
        of_these = _span(part, places, max(first, wanted[0]), min(end, wanted[1]))
        size = of_these[1] - of_these[0]
        made[at : at + size] = block[of_these[0] - begin : of_these[1] - begin]
        at += size
    return at


def _check_size(path: Path, expected: int) -> None:
    """Raise `CorruptFile` unless a file is there and has so many bytes."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise CorruptFile(
            f"{path} is missing ({error.strerror}): all ranks must see one folder, and its files stay together"
        ) from None
    if size != expected:
        raise CorruptFile(f"{path} is truncated or altered: it has {size:,} bytes in place of {expected:,}; save anew")
