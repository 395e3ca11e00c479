"""Real keys: TPC-H line items, and columns of Parquet files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError, WarphashError
from ...settings import cache_directory
from .workloads import first_of_each

__all__ = ["generator", "hashed_line", "pack_line", "parquet_column", "tpch_line"]

PART_BITS, LINE_BITS = 28, 3
"""Widths of two fields of a packed LINE key. partkey is below 2^28 up to scale factor 1,000; linenumber is 1 to 7.
orderkey takes the upper 33 bits."""

LINE_SCALES = (0.01, 0.1, 1.0, 8.0)
"""Scale factors that `hashed_line` takes keys from; the last has enough for the set of the paper."""

_ROWS_PER_SCALE = 6_000_000
"""About the rows of lineitem at scale factor 1: 1.5 million orders of 1 to 7 lines."""


def pack_line(
    orderkey: npt.NDArray[Any], linenumber: npt.NDArray[Any], partkey: npt.NDArray[Any]
) -> npt.NDArray[np.uint64]:
    """Pack (orderkey, linenumber, partkey) in 64 bits: the LINE set of Dynamic Hash Tables on GPUs, section 6.1.

    Raises
    ------
    ParameterError
        If a number does not fit its field.
    """
    for name, column, bits in (
        ("orderkey", orderkey, 64 - PART_BITS - LINE_BITS),
        ("linenumber", linenumber, LINE_BITS),
        ("partkey", partkey, PART_BITS),
    ):
        if len(column) and not 0 <= int(column.min()) <= int(column.max()) < 1 << bits:
            raise ParameterError(f"{name} must be in [0, 2^{bits}), got up to {int(column.max()):,}")
    high = orderkey.astype(np.uint64) << np.uint64(PART_BITS + LINE_BITS)
    middle = linenumber.astype(np.uint64) << np.uint64(PART_BITS)
    return np.asarray(high | middle | partkey.astype(np.uint64), np.uint64)


def tpch_line(scale: float = 1) -> npt.NDArray[np.uint64]:
    """The LINE keys of TPC-H at a scale factor. ``tpchgen-cli`` generates them once, into the cache directory."""
    import pyarrow.parquet

    file = cache_directory() / "tpch" / f"lineitem-{scale:g}.parquet"
    if not file.exists():
        _generate(file, scale)
    columns = ["l_orderkey", "l_linenumber", "l_partkey"]
    table = pyarrow.parquet.read_table(file, columns=columns)
    return pack_line(*(table[name].to_numpy() for name in columns))


def hashed_line(n: int) -> npt.NDArray[np.uint32]:
    """``n`` distinct LINE keys of TPC-H, in the order of the rows, hashed to 32 bits.

    Raises
    ------
    ParameterError
        If the largest of `LINE_SCALES` has too few rows.
    """
    for scale in LINE_SCALES:
        if n > 0.95 * scale * _ROWS_PER_SCALE:  # some hashes are equal
            continue
        packed = tpch_line(scale)
        hashed = ((packed ^ packed >> np.uint64(29)) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)).astype(np.uint32)
        # The first row of each hash. Words of a hash and its row are sorted sooner than rows are by their hashes.
        ordered = np.sort(hashed.astype(np.uint64) << np.uint64(32) | np.arange(len(hashed), dtype=np.uint64))
        first: npt.NDArray[np.uint32] = ordered[first_of_each(ordered >> np.uint64(32))].astype(np.uint32)
        first.sort()
        return hashed[first[:n]]
    raise ParameterError(f"scale factor {LINE_SCALES[-1]:g} of TPC-H has no {n:,} distinct LINE keys")


def parquet_column(path: str, column: str) -> npt.NDArray[Any]:
    """One column of integers of a Parquet file, without its nulls.

    Raises
    ------
    ParameterError
        If there is no such file or column, or the column does not hold integers.
    """
    import pyarrow.parquet

    if not Path(path).is_file():
        raise ParameterError(f"there is no file {path!r}: give FILE.parquet:COLUMN")
    try:
        names = pyarrow.parquet.read_schema(path).names
        if names.count(column) == 1:
            values = pyarrow.parquet.read_table(path, columns=[column])[column].drop_null().to_numpy()
    except (pyarrow.ArrowException, OSError) as error:
        raise ParameterError(f"{path} is no Parquet file that can be read: {error}") from None
    if names.count(column) != 1:
        has = f"{names.count(column)} columns" if column in names else "no column"
        raise ParameterError(f"{path} has {has} {column!r}; it has: {', '.join(names)}")
    if values.dtype.kind not in "iu":
        raise ParameterError(f"column {column!r} must hold integers, got {values.dtype}")
    return np.asarray(values, f"{values.dtype.kind}{4 if values.dtype.itemsize <= 4 else 8}")


def generator() -> str | None:
    """Path of ``tpchgen-cli``, which is beside this Python or on the PATH; None if it is in neither place."""
    beside = Path(sys.executable).parent / "tpchgen-cli"
    return str(beside) if beside.exists() else shutil.which("tpchgen-cli")


def _generate(file: Path, scale: float) -> None:
    program = generator()
    if program is None:
        raise WarphashError("TPC-H data needs tpchgen-cli: pip install 'warphash[bench]', or use --data random")
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        command = [program, "parquet", "-s", f"{scale:g}", "--tables", "lineitem", "--output-dir", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        made = sorted(Path(folder).rglob("*.parquet"))
        if done.returncode or len(made) != 1:
            raise WarphashError(f"tpchgen-cli failed: {done.stderr.strip()[-300:] or 'it made no file'}")
        made[0].replace(file)
