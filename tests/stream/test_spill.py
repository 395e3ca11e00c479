"""Files of runs: left by none, removed after a crash, kept of living runs; full disks and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import warphash
from stream.plain import drawn
from warphash import stream
from warphash.stream.progress import Lines
from warphash.stream.spill import SpillFolder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs flock and signals")

MEMORY = 60_000
TABLE = drawn("string", 2000)
OTHER = drawn("string", 2000, seed=2).rename_columns(["k", "t", "w"])

VERBS: dict[str, Any] = {
    "unique": lambda src, **means: stream.unique(src, ["k", "s"], **means),
    "count": lambda src, **means: stream.count(src, ["k", "s"], **means),
    "dedupe": lambda src, **means: stream.dedupe(src, ["k", "s"], **means),
    "group_by": lambda src, **means: stream.group_by(src, ["k", "s"], {"a": ("v", "median")}, **means),
    "join": lambda src, **means: stream.join(src, OTHER, "k", "semi", **means),
    "join pairs": lambda src, **means: stream.join(src, OTHER[:300], "k", **means),
}
verbs = pytest.mark.parametrize("verb", VERBS)


def runs_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("warphash-*/*"))


class Stops:
    """Raises at the n-th advance of the work."""

    def __init__(self, after: int, error: BaseException) -> None:
        self.left, self._error = after, error
        self.is_closed = False

    def begin(self, step: str, rows: int | None) -> None:
        pass

    def advance(self, rows: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise self._error

    def close(self) -> None:
        self.is_closed = True


@verbs
@pytest.mark.parametrize("after", [1, 3, 12, 40, 100])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("out", ["file", "old file", "reader"])
def test_an_error_leaves_nothing(
    verb: str, after: int, error: type[BaseException], out: str, tmp_path: Path, temporary: Path
) -> None:
    path, stops = tmp_path / "out.parquet", Stops(after, error())
    if out == "old file":
        path.write_bytes(b"old")
    means: dict[str, Any] = {"memory": MEMORY, "progress": stops}
    if out != "reader":
        means["out"] = path
    try:
        made = VERBS[verb](TABLE.to_reader(100), **means)
        if out == "reader":
            made.read_all()
    except error:
        assert not path.exists() if out != "old file" else path.read_bytes() == b"old"
    else:
        assert stops.left > 0, "the error was lost"
    assert stops.is_closed
    assert not runs_in(temporary)
    assert not list(tmp_path.glob(".warphash-*"))


@verbs
def test_errors_of_the_source_come_as_they_are(verb: str, tmp_path: Path) -> None:
    def batches() -> Iterator[pa.Table]:
        yield TABLE
        raise ZeroDivisionError("of the source")

    with pytest.raises(ZeroDivisionError, match="of the source"):
        VERBS[verb](batches(), memory=MEMORY, out=tmp_path / "out.parquet")
    assert not list(tmp_path.glob("*.parquet"))


def test_a_reader_that_is_left_removes_its_files(temporary: Path) -> None:
    reader = stream.unique(TABLE.to_reader(100), ["k", "s"], memory=MEMORY)
    assert not runs_in(temporary), "the work begins when the reader is read"
    reader.read_next_batch()
    assert len(runs_in(temporary)) == 2
    del reader
    assert not runs_in(temporary)


def test_what_is_read_once_is_kept_only_for_another_pass(temporary: Path) -> None:
    """The keys fit, and so nothing is written unless rows are needed again."""
    wide = [pa.table({"k": range(at, at + 50), "text": ["x" * 900] * 50}) for at in range(0, 500, 50)]
    made = []
    for verb in (stream.unique, stream.dedupe):
        reader = verb(iter(wide), "k", memory=500_000)
        reader.read_next_batch()
        made.append(len(runs_in(temporary)))
        del reader
    assert made == [0, 2]


def test_the_package_has_the_streams() -> None:
    """They are imported when they are first asked for."""
    code = "import sys, warphash; assert 'warphash.stream' not in sys.modules; print(warphash.stream.dedupe.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "dedupe\n"


def test_without_pyarrow_the_error_has_the_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="needs PyArrow: pip install pyarrow"):
        stream.unique(TABLE)


def test_a_folder_of_the_caller(tmp_path: Path, temporary: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    reader = stream.unique(TABLE.to_reader(100), ["k", "s"], memory=MEMORY, folder=mine)
    reader.read_next_batch()
    assert len(runs_in(mine)) == 2
    assert not runs_in(temporary)
    del reader
    assert not runs_in(mine)


RUN = """
import os, signal, sys, time
from warphash.stream.spill import SpillFolder
folder = SpillFolder(sys.argv[1])
folder.path().write_bytes(b"rows")
print("ready", flush=True)
time.sleep(60)
"""


def started(folder: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", RUN, str(folder)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def test_the_next_run_removes_dead_runs_and_no_living_one(temporary: Path) -> None:
    with started(temporary) as living, started(temporary) as dead:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert len(runs_in(temporary)) == 4
        folder = SpillFolder()
        folder.path()
        assert len(runs_in(temporary)) == 4, "the folder and the lock of the living run, and ours"
        folder.close()
        assert len(runs_in(temporary)) == 2
        living.send_signal(signal.SIGKILL)
    folder = SpillFolder()
    folder.path()
    folder.close()
    assert not runs_in(temporary)


def test_a_forked_process_removes_nothing(temporary: Path) -> None:
    folder = SpillFolder()
    folder.path()
    child = os.fork()
    if child == 0:
        folder.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(runs_in(temporary)) == 2
    folder.close()


def test_a_folder_of_somebody_else_is_refused(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    link = temporary / f"warphash-{os.getuid()}"
    link.symlink_to(elsewhere)
    with pytest.raises(warphash.PathError, match="no folder of this user"):
        SpillFolder().path()
    link.unlink()


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(warphash.PathError, match="no/folder is not there: make it, or give another folder="):
        stream.unique(TABLE, ["k", "s"], memory=MEMORY, folder=tmp_path / "no" / "folder").read_all()


FULL = """
import resource, sys
import pyarrow.parquet as pq
from warphash import stream
source, out, limit = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    stream.dedupe(source, ["k", "s"], out=out, memory=60_000)
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize(("limit", "words"), [(1000, "a spill file in"), (9_000, "writing")])
def test_a_full_disk_says_so(limit: int, words: str, tmp_path: Path, temporary: Path) -> None:
    """A file may have so many bytes: spill files have fewer than the answer."""
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(drawn("int64", 4000), source)
    environment = {**os.environ, "TMPDIR": str(temporary)}
    run = [sys.executable, "-c", textwrap.dedent(FULL), str(source), str(out), str(limit)]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=environment)
    assert "there is no room for" in done.stdout, done.stderr
    assert words in done.stdout
    assert not out.exists()
    assert not runs_in(temporary)
    assert not list(tmp_path.glob(".warphash-*"))


def test_lines_come_after_some_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(seconds=0)
    lines.begin("keys", 3000)
    lines.advance(1200)
    lines.begin("rows", None)
    lines.advance(70)
    silent = Lines(seconds=60)
    silent.begin("keys", None)
    silent.advance(5)
    assert capsys.readouterr().err == "keys: 1,200 of 3,000 rows\nrows: 70 rows\n"


def test_a_bar_where_a_terminal_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert stream.unique(TABLE, "k").read_all().num_rows > 1
    assert "keys" in capsys.readouterr().err


@pytest.mark.parametrize("progress", [None, False])
def test_nothing_is_shown_in_a_pipe(progress: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stream.unique(TABLE, "k", progress=progress).read_all()
    assert capsys.readouterr().err == ""


PEAK = """
import resource, sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from warphash import stream
verb, source, other, out = sys.argv[1:]
small = pa.table({"a": range(9), "b": range(9), "w": range(9)})
stream.dedupe(small, ["a", "b"]).read_all()
stream.join(small, small, ["a", "b"], suffixes=("", "_right")).read_all()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
if verb == "dedupe":
    stream.dedupe(source, ["a", "b"], out=out, memory="60MB")
elif verb == "count":
    stream.count(source, ["a", "b"], out=out, memory="60MB")
else:
    stream.join(source, other, ["a", "b"], out=out, memory="60MB")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["dedupe", "count", "join"])
def test_the_peak_of_the_memory(verb: str, tmp_path: Path) -> None:
    """4 M rows of 256 MB within 60 MB. The bound is twice that, because allocators keep what is freed."""
    import numpy as np

    chance = np.random.default_rng(1)
    source, other = tmp_path / "in.parquet", tmp_path / "other.parquet"
    names = ["a", "b", *"cdefgh"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    with pq.ParquetWriter(source, schema) as writer:
        for _ in range(8):
            keys = chance.integers(0, 1 << 22, 500_000)
            writer.write_table(pa.table([keys, keys % 1000, *chance.integers(0, 1 << 60, (6, 500_000))], names=names))
    keys = chance.permutation(1 << 22)[:1_000_000]
    pq.write_table(pa.table({"a": keys, "b": keys % 1000, "w": keys}), other)
    run = [sys.executable, "-c", PEAK, verb, str(source), str(other), str(tmp_path / "out.parquet")]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 120
