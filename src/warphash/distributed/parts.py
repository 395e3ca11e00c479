"""A folder with a Parquet file of each rank: ``part-00000.parquet``, and so on. The folder is complete or absent.

1. All ranks look whether the folder can be made, before the work.
2. Each writes its file into a new folder beside it, whose name begins with a point and that of the folder.
3. When all ranks have written theirs, rank 0 renames that folder. If one could not, rank 0 removes it.

All ranks see one file system. Ranks that are killed leave the folder of step 2 behind, and it can be removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from .. import atomic_file
from ..errors import CollectiveError, ParameterError, PathError
from ..stream.output import write_parquet
from .channel import Channel

__all__ = ["check_folder", "write_parts"]


def check_folder(out: str | os.PathLike[str]) -> None:
    """Raise if no folder with parts can be made there.

    Raises
    ------
    ParameterError
        If the folder has files.
    PathError
        If the path is a file, or in no folder.
    """
    path = Path(out)
    if path.is_dir():
        if any(path.iterdir()):
            raise ParameterError(f"{path} has files: give a new or an empty folder, which gets a file of each rank")
    elif path.exists():
        raise PathError(f"{path} is a file: give a folder, which gets a file of each rank")
    elif not path.resolve().parent.is_dir():
        raise PathError(f"there is no folder {path.parent} to make {path.name} in")


def write_parts(channel: Channel, out: str | os.PathLike[str], schema: Any, tables: Iterator[Any]) -> int:
    """Write tables of this rank as its part, and return how many rows all parts have. Collective.

    Raises
    ------
    CollectiveError
        If a rank cannot make its rows, or write them. The folder is as it was.
    PeerLost
        If a rank does not answer.
    """
    path = Path(out).resolve()
    with channel.call("write parts") as call:
        call.agree()
        temporary = path.with_name(f".{path.name}-{call.told(os.urandom(8).hex())[0]}")
    rows = 0

    def write(file: BinaryIO) -> None:
        nonlocal rows
        rows = write_parquet(schema, tables, file)

    def write_part() -> None:
        temporary.mkdir(exist_ok=True)
        atomic_file.replace(temporary / f"part-{channel.rank:05}.parquet", write)

    def rename() -> None:
        if channel.rank == 0:
            check_folder(path)
            temporary.replace(path)
            with suppress(OSError):
                atomic_file.sync_folder(path.parent)

    try:
        channel.done("write a part", write_part)
        channel.done("name the parts", rename)
    except (CollectiveError, KeyboardInterrupt):
        if channel.rank == 0:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    with channel.call("count the rows of parts") as call:
        call.agree()
        return sum(call.told(rows))
