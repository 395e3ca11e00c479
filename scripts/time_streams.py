"""Time `warphash.stream` beside DuckDB, within one budget of memory, each call in a process of its own.

::

    python scripts/time_streams.py --rows 10_000_000 --memory 200MB --folder /tmp/streams --rounds 3

It needs DuckDB. The Parquet file has two columns of int64 as the key, three more and three of float64. Of its rows,
63 % have a key that no row before them has. The other side of the join has a tenth as many rows, with distinct keys.
Prints medians: seconds, seconds of the processor, and the peak of the memory of the process, with the imports.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

JOBS = ("dedupe", "join", "count")
LIBRARIES = ("warphash", "duckdb", "duckdb in order")
QUERIES = {
    "dedupe": "select distinct on (a, b) * from '{source}'",
    "join": "select l.*, r.w from '{source}' l join '{other}' r using (a, b)",
    "count": "select a, b, count(*) n from '{source}' group by a, b order by n desc",
}


def make(rows: int, source: Path, other: Path) -> None:
    import numpy as np
    import pyarrow as arrow
    from pyarrow import parquet

    chance = np.random.default_rng(7)

    def keys(ids: Any) -> list[Any]:
        return [ids * 0x9E3779B1 % (1 << 40), ids % 1000 * 77777]

    names = ["a", "b", "c", "d", "e", "x", "y", "z"]
    types = [arrow.int64()] * 5 + [arrow.float64()] * 3
    with parquet.ParquetWriter(source, arrow.schema(list(zip(names, types, strict=True)))) as writer:
        for begin in range(0, rows, 1 << 20):
            n = min(1 << 20, rows - begin)
            columns = [*keys(chance.integers(0, rows, n)), *chance.integers(0, 1 << 50, (3, n)), *chance.random((3, n))]
            writer.write_table(arrow.table(columns, names=names))
    ids = chance.permutation(rows)[: rows // 10]
    parquet.write_table(arrow.table([*keys(ids), chance.random(len(ids))], names=["a", "b", "w"]), other)


def do(library: str, job: str, files: tuple[str, str, str], memory: str) -> None:
    """One job. Prints its seconds, those of the processor, and MB at the peak."""
    source, other, out = files
    begin = time.perf_counter()
    if library == "warphash":
        from warphash import set_num_threads, stream

        set_num_threads(2)
        if job == "dedupe":
            stream.dedupe(source, ["a", "b"], out=out, memory=memory)
        elif job == "join":
            stream.join(source, other, ["a", "b"], out=out, memory=memory)
        else:
            stream.count(source, ["a", "b"], out=out, name="n", memory=memory)
    else:
        import duckdb

        connection = duckdb.connect()
        in_order = str(library == "duckdb in order").lower()
        connection.execute(f"SET memory_limit='{memory}'; SET threads=2; SET preserve_insertion_order={in_order}")
        connection.execute(f"SET temp_directory='{out}.spilled'")
        query = QUERIES[job].format(source=source, other=other)
        connection.execute(f"copy ({query}) to '{out}' (format parquet)")
    seconds, used = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
    print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="200MB")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--job", nargs=2, metavar=("LIBRARY", "JOB"), help="one job in this process")
    asked = parser.parse_args()
    asked.folder.mkdir(exist_ok=True)
    source, other = (asked.folder / f"{name}-{asked.rows}.parquet" for name in ("source", "other"))
    out = asked.folder / "out.parquet"
    if asked.job:
        library, job = asked.job
        do(library, job, (str(source), str(other), str(out)), asked.memory)
        return
    if not source.exists():
        make(asked.rows, source, other)
    done: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(asked.rounds):
        for job in JOBS:
            for library in LIBRARIES:
                call = [sys.executable, __file__, *sys.argv[1:], "--job", library, job]
                made = subprocess.run(call, capture_output=True, text=True, check=False)
                if made.returncode:
                    print(f"{job} by {library} failed: {made.stderr.strip().splitlines()[-1]}")
                    continue
                done.setdefault((job, library), []).append([float(part) for part in made.stdout.split()])
    for (job, library), figures in done.items():
        seconds, cpu, peak = (statistics.median(column) for column in zip(*figures, strict=True))
        print(f"{job:8} {library:16} {seconds:7.2f} s {cpu:7.2f} s of the processor {peak:7.0f} MB")


if __name__ == "__main__":
    main()
