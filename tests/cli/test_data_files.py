"""The commands on data files, beside plain Python: rows, formats, streams, refusals and exit codes."""

from __future__ import annotations

import collections
import csv
import gzip
import io
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import warphash as library
from support import command

pytest.importorskip("typer")
pytest.importorskip("matplotlib")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Row = dict[str, Any]

FORMATS = ("csv", "csv.gz", "parquet")
formats = pytest.mark.parametrize("ending", FORMATS)


def some_rows(n: int, seed: int = 1) -> list[Row]:
    """Rows with keys that repeat, texts that CSV has to quote, and nulls."""
    chance = random.Random(seed)
    towns = ["Ulm", "Bonn, am Rhein", 'say "x"', "", "two\nlines", None, "007"]
    return [
        {"shop": chance.choice([None, *range(9)]), "town": chance.choice(towns), "price": chance.randrange(99) / 4}
        for _ in range(n)
    ]


def save(rows: Sequence[Row], path: Path | str) -> str:
    names = list(rows[0])
    if str(path).endswith("parquet"):
        pq.write_table(pa.table({name: [row[name] for row in rows] for name in names}), path)
        return str(path)
    said = io.StringIO()
    writer = csv.writer(said, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        fields = ['""' if row[name] == "" else _field(row[name]) for name in names]
        said.write(",".join(fields) + "\n")
    data = said.getvalue().encode()
    Path(path).write_bytes(gzip.compress(data) if str(path).endswith("gz") else data)
    return str(path)


def _field(item: Any) -> str:
    if item is None:
        return ""
    text = str(item)
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if any(sign in text for sign in ',"\n') else text


def rows_of(path: Path | str) -> list[tuple[Any, ...]]:
    """The rows of a file, with the items as text: None and an empty text are both empty."""
    if str(path).endswith("parquet"):
        rows = pq.read_table(path).to_pylist()
        return [tuple("" if item is None else _plain(item) for item in row.values()) for row in rows]
    data = Path(path).read_bytes()
    return fields(gzip.decompress(data) if str(path).endswith("gz") else data)


def fields(data: bytes) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(data.decode(), newline=""))][1:]


def _plain(item: Any) -> str:
    return f"{item:g}" if isinstance(item, float) else str(item)


def shown(items: Sequence[Any]) -> tuple[str, ...]:
    return tuple("" if item is None else _plain(item) for item in items)


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.glob(".warphash-*")), "a temporary file is left"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    return partial(command.run, monkeypatch)


def firsts(rows: Sequence[Row], names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))


@formats
@pytest.mark.parametrize("on", [("shop",), ("town",), ("shop", "town"), ("town", "price")])
def test_unique(run: Any, ending: str, on: tuple[str, ...]) -> None:
    rows = some_rows(300)
    assert run("unique", save(rows, f"a.{ending}"), "--on", ",".join(on), "-o", f"b.{ending}") == 0
    assert rows_of(f"b.{ending}") == [shown(key) for key in firsts(rows, on)]


@formats
def test_unique_sorts_on_demand(run: Any, ending: str) -> None:
    rows = [row for row in some_rows(300) if row["shop"] is not None]
    assert run("unique", save(rows, f"a.{ending}"), "--on", "shop", "--sort", "-o", "b.csv") == 0
    assert rows_of("b.csv") == [(str(shop),) for shop in sorted({row["shop"] for row in rows})]


@formats
@pytest.mark.parametrize("top", [None, 3])
def test_count(run: Any, ending: str, top: int | None) -> None:
    rows = some_rows(300)
    wanted = collections.Counter((row["shop"], row["town"]) for row in rows).most_common(top)
    arguments = ("--on", "shop", "--on", "town", *(("--top", str(top)) if top else ()), "-o", f"b.{ending}")
    assert run("count", save(rows, f"a.{ending}"), *arguments) == 0
    assert rows_of(f"b.{ending}") == [(*shown(key), str(number)) for key, number in wanted]


@formats
@pytest.mark.parametrize("keep", ["first", "last", "none"])
def test_dedupe(run: Any, ending: str, keep: str) -> None:
    rows = some_rows(100)
    seen: dict[Any, list[int]] = {}
    for number, row in enumerate(rows):
        seen.setdefault(row["shop"], []).append(number)
    places = {"first": [p[0] for p in seen.values()], "last": [p[-1] for p in seen.values()]}
    kept = places.get(keep, [p[0] for p in seen.values() if len(p) == 1])
    assert run("dedupe", save(rows, f"a.{ending}"), "--on", "shop", "--keep", keep, "-o", f"b.{ending}") == 0
    assert rows_of(f"b.{ending}") == [shown(list(rows[place].values())) for place in sorted(kept)]


def test_dedupe_checks_whether_keys_repeat(run: Any, capsysbinary: Any) -> None:
    save([{"a": 1, "b": 1}, {"a": 1, "b": 2}], "a.csv")
    assert run("dedupe", "a.csv", "--check") == 0
    assert run("dedupe", "a.csv", "--check", "--on", "a") == 1
    assert capsysbinary.readouterr().out == b""


HOWS = ("inner", "left", "right", "outer", "semi", "anti")


@formats
@pytest.mark.parametrize("nulls", ["unequal", "equal"])
@pytest.mark.parametrize("how", HOWS)
def test_join(run: Any, ending: str, how: str, nulls: str) -> None:
    left = [{"shop": row["shop"], "price": row["price"]} for row in some_rows(40, 2)]
    right = [{"shop": row["shop"], "town": row["town"]} for row in some_rows(8, 3)] + [{"shop": 77, "town": "Ulm"}]
    wanted = joined(left, right, how, nulls == "equal")
    arguments = (save(left, f"l.{ending}"), save(right, f"r.{ending}"), "--how", how, "--nulls", nulls)
    assert run("join", *arguments, "-o", f"b.{ending}") == 0
    assert rows_of(f"b.{ending}") == [shown(row) for row in wanted]


def joined(left: list[Row], right: list[Row], how: str, nulls: bool) -> list[tuple[Any, ...]]:
    def alike(a: Row, b: Row) -> bool:
        return a["shop"] == b["shop"] and (nulls or a["shop"] is not None)

    pairs = [(a["shop"], a["price"], b["town"]) for a in left for b in right if alike(a, b)]
    if how == "inner":
        return pairs
    if how in ("semi", "anti"):
        return [(a["shop"], a["price"]) for a in left if any(alike(a, b) for b in right) == (how == "semi")]
    if how == "right":
        return [
            row
            for b in right
            for row in [(b["shop"], a["price"], b["town"]) for a in left if alike(a, b)]
            or [(b["shop"], None, b["town"])]
        ]
    of_left = [
        row
        for a in left
        for row in [(a["shop"], a["price"], b["town"]) for b in right if alike(a, b)] or [(a["shop"], a["price"], None)]
    ]
    lonely = [(b["shop"], None, b["town"]) for b in right if not any(alike(a, b) for a in left)]
    return of_left + (lonely if how == "outer" else [])


def test_join_on_names_that_differ(run: Any, capsysbinary: Any) -> None:
    save([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}], "l.csv")
    save([{"user": 2, "name": "c"}], "r.parquet")
    named = ("--left-on", "id", "--right-on", "user")
    assert run("join", "l.csv", "r.parquet", *named, "--suffixes", "_l,_r") == 0
    assert capsysbinary.readouterr().out == b"id,name_l,user,name_r\n2,b,2,c\n"


def test_join_with_a_file_without_rows(run: Any, capsysbinary: Any) -> None:
    save([{"id": 1}, {"id": 2}], "l.csv")
    Path("r.csv").write_text("id,name\n")
    assert run("join", "l.csv", "r.csv", "--how", "left") == 0
    assert capsysbinary.readouterr().out == b"id,name\n1,\n2,\n"


@formats
def test_group(run: Any, ending: str) -> None:
    rows = some_rows(300)
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["town"], row["shop"]), []).append(row)
    asked = ("--agg", "total=price:sum", "--agg", "most=price:max", "--agg", "n=size")
    assert run("group", save(rows, f"a.{ending}"), "--on", "town,shop", *asked, "-o", f"b.{ending}") == 0
    assert rows_of(f"b.{ending}") == [
        shown((*key, sum(row["price"] for row in of), max(row["price"] for row in of), len(of)))
        for key, of in groups.items()
    ]


def test_several_files_are_read_one_behind_the_other(run: Any, capsysbinary: Any) -> None:
    Path("a.csv").write_text("a,b\n1,x\n2,y\n")
    Path("b.csv").write_text("b,a\nz,3\nx,1\n")
    save([{"a": 1, "b": "x"}, {"a": 4, "b": "w"}], "c.parquet")
    assert run("unique", "a.csv", "b.csv", "c.parquet") == 0
    assert capsysbinary.readouterr().out == b"a,b\n1,x\n2,y\n3,z\n4,w\n"
    Path("d.csv").write_text("a,b\nk7,x\n")  # no number, so the column is text in all CSV files
    assert run("unique", "a.csv", "d.csv", "--on", "a") == 0
    assert capsysbinary.readouterr().out == b"a\n1\n2\nk7\n"


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "7"],
        ["12345678901234567890", "12345678901234567891"],
        ["1.5", "007.5"],
        ["1", "+1"],
        ["1.50", "1.5", "x"],
        ["2026-01-01", "2026-01-01T00:00"],
        ["true", "True"],
        ["0.1", "9007199254740993"],
        ["NA", "1"],
    ],
)
def test_what_is_no_plain_number_stays_as_it_is(run: Any, capsysbinary: Any, texts: list[str]) -> None:
    Path("a.csv").write_text("".join(f"{text}\n" for text in ["key", *texts, texts[0]]))
    assert run("unique", "a.csv") == 0
    assert capsysbinary.readouterr().out.decode().split() == ["key", *texts]


def test_text_keeps_numbers_as_they_are_written(run: Any, capsysbinary: Any) -> None:
    Path("a.csv").write_text("key\n1.50\n1.5\n1.50\n")
    assert run("unique", "a.csv", "--text") == 0
    assert capsysbinary.readouterr().out == b"key\n1.50\n1.5\n"
    assert run("count", "a.csv") == 0
    assert capsysbinary.readouterr().out == b"key,count\n1.5,3\n"


def test_a_column_that_turns_into_text_late(run: Any) -> None:
    Path("a.csv").write_text("key,n\n" + "".join(f"{i},{i}\n" for i in range(200_000)) + "end,1\n")
    assert run("unique", "a.csv", "--on", "key", "-o", "b.csv") == 0
    assert len(Path("b.csv").read_text().splitlines()) == 200_002


def test_an_empty_text_is_no_null(run: Any, capsysbinary: Any) -> None:
    Path("a.csv").write_text('key,n\n"",1\n,2\n"",3\n')
    assert run("dedupe", "a.csv", "--on", "key") == 0
    assert capsysbinary.readouterr().out == b'key,n\n"",1\n,2\n'


def test_a_null_in_a_single_column_is_no_empty_line(run: Any, capsysbinary: Any) -> None:
    Path("a.csv").write_text("key,n\n5,1\n,2\n")
    assert run("unique", "a.csv", "--on", "key", "-o", "b.csv") == 0
    assert Path("b.csv").read_text() == 'key\n"5"\n""\n'
    assert run("group", "b.csv", "--on", "key", "--agg", "sum=key:sum") == 0
    assert capsysbinary.readouterr().out == b"key,sum\n5,5\n,0\n"


def test_a_column_whose_name_has_a_comma(run: Any, capsysbinary: Any) -> None:
    Path("a.csv").write_text('"a,b",c\n1,2\n1,3\n')
    assert run("unique", "a.csv", "--on", "a,b") == 0
    assert capsysbinary.readouterr().out == b'"a,b"\n1\n'


def warphash(*arguments: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    run = [sys.executable, "-m", "warphash", *arguments]
    return subprocess.run(run, input=data, capture_output=True, check=False, timeout=60)


def test_standard_input_and_output_and_the_summary() -> None:
    done = warphash("count", "-", "--on", "a", data=b"a,b\n1,2\n3,4\n3,5\n")
    assert (done.returncode, done.stdout) == (0, b"a,count\n3,2\n1,1\n")
    head, _, counts, *_ = [line for line in done.stderr.decode().splitlines() if line.strip()]
    assert head.split()[:2] == ["rows", "in"] and counts.split()[:3] == ["3", "2", "2"]


def test_a_reader_that_has_enough_is_no_error() -> None:
    Path("a.csv").write_text("key\n" + "".join(f"{i}\n" for i in range(200_000)))
    run = [sys.executable, "-m", "warphash", "unique", "a.csv"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"key\n"
        process.stdout.close()
        assert process.stderr and process.stderr.read() == b""
        assert process.wait(60) == 141


def test_completion_knows_the_commands() -> None:
    words = {"_WARPHASH_COMPLETE": "complete_bash", "COMP_WORDS": "warphash de", "COMP_CWORD": "1"}
    code = "import sys; sys.argv = ['warphash']; from warphash.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["dedupe"]


@pytest.mark.parametrize("name", ["unique", "count", "dedupe", "join", "group", "bench"])
def test_help_shows_no_type_of_flags(run: Any, capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run(name, "--help") == 0
    said = capsys.readouterr().out
    assert ("<bool>" not in said and "--out" in said) or name == "bench"


def test_a_picture_of_the_most_frequent(run: Any) -> None:
    Path("a.csv").write_text("key\n$x_$\n$x_$\ny\n\n" + "long" * 40 + "\n")
    assert run("count", "a.csv", "--plot", "x.png", "-o", "b.csv") == 0
    assert Path("x.png").read_bytes().startswith(b"\x89PNG")


SMALL = "a,b\n1,x\n1,y\n"
REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("unique", "a.csv", "--on", "aa"), "there is no column 'aa' (--on): did you mean 'a'?"),
    (("unique", "a.parquet", "--on", "a,q"), "there is no column 'q' (--on): the columns are 'a', 'b'"),
    (("unique", "twice.csv", "--on", "a"), "expected one column 'a' in --on, got 2"),
    (("unique", "twice.csv"), "expected one column 'a' in the file, got 2"),
    (("count", "a.csv", "--on", "q"), "there is no column 'q' (--on)"),
    (("dedupe", "a.csv", "--on", "q"), "there is no column 'q' (--on)"),
    (("group", "a.csv", "--on", "q", "--agg", "n=size"), "there is no column 'q' (--on)"),
    (("group", "a.csv", "--on", "a", "--agg", "n=q:sum"), "there is no column 'q' (--agg)"),
    (("group", "a.csv", "--on", "a", "--agg", "n=b:sum"), "sum"),
    (("group", "a.csv", "--on", "a", "--agg", "n=a:summ"), "summ"),
    (("group", "a.csv", "--on", "a", "--agg", "n"), "expected --agg NAME=COLUMN:OPERATION or NAME=size"),
    (("group", "a.csv", "--on", "a", "--agg", "n=size", "--agg", "n=b:first"), "two --agg have one name"),
    (("group", "a.csv", "--on", "a", "--agg", "a=size"), "an answer and a key would both be named 'a'"),
    (("group", "a.csv", "--on", "a"), "--agg"),
    (("join", "a.csv", "c.csv"), "a.csv and c.csv have no column in common"),
    (("join", "a.csv", "c.csv", "--left-on", "a"), "expected --on, or --left-on and --right-on"),
    (("join", "a.csv", "c.csv", "--left-on", "a,b", "--right-on", "c"), "got 2 and 1"),
    (("join", "a.csv", "c.csv", "--on", "a"), "there is no column 'a' (in c.csv): the columns are 'c'"),
    (("join", "a.csv", "a.csv", "--on", "a", "--validate", "1:m"), "row"),
    (("join", "a.csv", "a.csv", "--on", "a", "--suffixes", "x"), "expected two suffixes"),
    (("group", "a.csv", "--on", "a", "--agg", "n=b:sum,m=size"), "one answer in each --agg"),
    (("join", "a.csv", "c.csv", "--left-on", "a", "--right-on", "c"), "give --text"),
    (("join", "-", "-"), "LEFT and RIGHT are both standard input"),
    (("join", "a.csv", "c.csv", "--how", "cross"), "--how"),
    (("unique", "none.csv"), "there is no file 'none.csv'"),
    (("unique", "folder"), "folder is a folder"),
    (("unique", "text.txt"), "expected a file .csv, .csv.gz, .tsv or .parquet, got 'text.txt'"),
    (("unique", "torn.parquet"), "torn.parquet is no Parquet file that can be read"),
    (("unique", "text.parquet"), "text.parquet is no Parquet file that can be read"),
    (("unique", "empty.csv"), "empty.csv is no CSV file that can be read"),
    (("unique", "ragged.csv"), "ragged.csv is no CSV file that can be read"),
    (("unique", "latin.csv"), "latin.csv is no CSV file that can be read"),
    (("unique", "a.csv", "c.csv"), "expected the columns of a.csv in c.csv, too (a, b), got c"),
    (("unique", "-", "-"), "standard input (-) can be read once"),
    (("unique", "a.csv", "-o", "b.txt"), "expected a file .csv, .csv.gz or .parquet, got 'b.txt'"),
    (("unique", "a.csv", "-o", "none/b.csv"), "there is no folder none to write b.csv to"),
    (("unique", "a.csv", "-o", "folder.csv"), "folder.csv is a folder"),
    (("dedupe", "list.parquet", "--on", "a", "-o", "b.csv"), "give -o FILE.parquet"),
    (("count", "a.csv", "--plot", "b.xyz"), "must end in a format of pictures"),
    (("count", "a.csv", "--top", "0"), "--top"),
    (("count", "counted.csv"), "would both be named 'count': give --name"),
    (("dedupe", "a.csv", "--keep", "any"), "--keep"),
    (("dedupe", "a.csv", "--check", "-o", "b.csv"), "--check writes no rows"),
    (("unique",), "FILE"),
]


@pytest.mark.parametrize(("arguments", "says"), REFUSED, ids=[" ".join(arguments) for arguments, _ in REFUSED])
def test_a_refusal_is_one_line_and_code_2(
    run: Any, capsys: pytest.CaptureFixture[str], folder: Path, arguments: tuple[str, ...], says: str
) -> None:
    for name, content in {
        "a.csv": SMALL,
        "c.csv": "c\nx\n",
        "text.txt": SMALL,
        "twice.csv": "a,a\n1,2\n",
        "counted.csv": "count\n1\n",
        "text.parquet": SMALL,
        "empty.csv": "",
        "ragged.csv": "a,b\n1\n",
    }.items():
        Path(name).write_text(content)
    Path("latin.csv").write_bytes("a\nü\n".encode("latin-1"))
    Path("folder").mkdir()
    Path("folder.csv").mkdir()
    save([{"a": 1, "b": "x"}], "a.parquet")
    Path("torn.parquet").write_bytes(Path("a.parquet").read_bytes()[:-9])
    save([{"a": 1, "n": [1, 2]}, {"a": 1, "n": [3]}], "list.parquet")
    before = sorted(folder.rglob("*"))
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and says in said.err
    assert said.err.count("\n") == 1 and said.out == ""
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "interrupted: b.{} is as it was"),
        (OSError(28, "No space left on device"), 2, "error: there is no room for writing"),
    ],
)
def test_a_write_that_fails_leaves_the_output_as_it_was(
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ending: str,
    failure: BaseException,
    code: int,
    says: str,
) -> None:
    Path("a.csv").write_text(SMALL)
    Path(f"b.{ending}").write_text("old")

    def fail(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    assert run("unique", "a.csv", "-o", f"b.{ending}") == code
    said = capsys.readouterr().err
    assert said.startswith(says.format(ending)) and said.count("\n") == 1
    assert Path(f"b.{ending}").read_text() == "old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    Path("a.csv").write_text(SMALL)
    with Path("/dev/full").open("wb") as full:
        run = [sys.executable, "-m", "warphash", "unique", "a.csv"]
        done = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert (
        done.stderr.startswith("error: there is no room for standard output (No space left")
        and done.stderr.count("\n") == 1
    )


def test_ctrl_c_meanwhile(run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    Path("a.csv").write_text(SMALL)
    monkeypatch.setattr(library, "unique", stop)
    assert run("unique", "a.csv", "-o", "b.csv") == 130
    assert capsys.readouterr().err == "interrupted: b.csv is as it was\n"
    assert not Path("b.csv").exists()


MEMORIES = pytest.mark.parametrize("memory", ["1GB", "40kB"])


@formats
@MEMORIES
@pytest.mark.parametrize(
    "arguments",
    [
        ("unique", "--on", "shop,town"),
        ("count", "--on", "shop,town"),
        ("count", "--on", "town", "--top", "3", "--name", "times"),
        ("dedupe", "--on", "shop,town"),
        ("dedupe", "--on", "price", "--keep", "last"),
        ("dedupe", "--on", "price,shop", "--keep", "none"),
        ("group", "--on", "town", "--agg", "n=size", "--agg", "sum=price:sum", "--agg", "last=shop:last"),
        ("group", "--on", "shop,town", "--agg", "mid=price:median"),
    ],
    ids=" ".join,
)
def test_memory_changes_no_row(run: Any, ending: str, memory: str, arguments: tuple[str, ...]) -> None:
    """The answers without --memory are those of plain Python, as the tests above show."""
    verb, *options = arguments
    paths = [save(some_rows(900, seed), f"{seed}.{ending}") for seed in (1, 2)]
    assert run(verb, *paths, *options, "-o", f"whole.{ending}") == 0
    assert run(verb, *paths, *options, "-o", f"made.{ending}", "--memory", memory) == 0
    assert rows_of(f"made.{ending}") == rows_of(f"whole.{ending}")
    assert len(rows_of(f"made.{ending}")) > 2


@formats
@MEMORIES
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("nulls", ["unequal", "equal"])
def test_memory_changes_no_row_of_a_join(run: Any, ending: str, memory: str, how: str, nulls: str) -> None:
    left, right = some_rows(300), [{"shop": row["shop"], "tax": row["price"]} for row in some_rows(40, seed=2)]
    files = save(left, f"a.{ending}"), save(right, f"b.{ending}")
    options = ("--how", how, "--nulls", nulls)
    assert run("join", *files, *options, "-o", f"whole.{ending}") == 0
    assert run("join", *files, *options, "-o", f"made.{ending}", "--memory", memory) == 0
    assert rows_of(f"made.{ending}") == rows_of(f"whole.{ending}")


@MEMORIES
@pytest.mark.parametrize("late", ["x", "1.5", "007", "9007199254740993", "-0", "1e3", "99999999999999999999"])
def test_types_of_csv_do_not_depend_on_the_memory(run: Any, memory: str, late: str) -> None:
    """What comes last decides: all rows are seen before."""
    texts = [*map(str, range(3000)), late]
    Path("a.csv").write_text("\n".join(["k,e", *(f"{text}," for text in texts)]) + "\n")
    assert run("unique", "a.csv", "-o", "whole.parquet") == 0
    assert run("unique", "a.csv", "-o", "made.parquet", "--memory", memory) == 0
    assert pq.read_table("made.parquet").equals(pq.read_table("whole.parquet"))


@MEMORIES
def test_text_stays_text_with_memory(run: Any, memory: str) -> None:
    save([{"k": "007"}, {"k": "7"}], "a.csv")
    assert run("unique", "a.csv", "-o", "b.csv", "--text", "--memory", memory) == 0
    assert rows_of("b.csv") == [("007",), ("7",)]


def test_standard_input_with_memory() -> None:
    done = warphash("count", "-", "--memory", "1GB", data=b"a\n1\n2\n2\n")
    assert (done.returncode, done.stdout) == (0, b"a,count\n2,2\n1,1\n")
    assert b"rows in" in done.stderr


def test_files_of_two_formats_with_memory(run: Any) -> None:
    rows = [{"k": number % 40, "t": "x"} for number in range(500)]
    files = save(rows[:200], "a.csv"), save(rows[200:], "b.parquet")
    assert run("count", *files, "--on", "k,t", "-o", "made.csv", "--memory", "20kB") == 0
    assert rows_of("made.csv") == [
        (*shown(key), str(n)) for key, n in collections.Counter(tuple(row.values()) for row in rows).most_common()
    ]


def test_a_check_with_memory(run: Any, capsysbinary: Any) -> None:
    save([{"a": 1, "b": 1}, {"a": 1, "b": 2}], "a.csv")
    assert run("dedupe", "a.csv", "--check", "--memory", "1GB") == 0
    assert run("dedupe", "a.csv", "--check", "--on", "a", "--memory", "1GB") == 1
    assert capsysbinary.readouterr().out == b""


def test_a_picture_with_memory(run: Any) -> None:
    save(some_rows(300), "a.csv")
    assert run("count", "a.csv", "--on", "town", "--memory", "1GB", "-o", "b.csv", "--plot", "b.png") == 0
    assert Path("b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("unique", "a.csv", "--sort"), "--sort takes all rows in memory"),
        (("group", "a.csv", "--on", "shop", "--agg", "n=size", "--sort"), "--sort takes all rows in memory"),
        (("join", "a.csv", "a.csv", "--validate", "1:1"), "--validate looks at all keys in memory"),
        (("unique", "-", "-"), "standard input (-) can be read once"),
        (("unique", "b.csv"), "there is no file 'b.csv'"),
        (("count", "a.csv", "--name", "shop"), "give --name for the counts"),
        (("unique", "a.csv", "--on", "b"), "no column 'b'"),
        (("unique", "twice.csv"), "expected one column 'x' in twice.csv, got 2: rename all but one"),
    ],
)
def test_refusals_with_memory(
    run: Any, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    save(some_rows(30), "a.csv")
    Path("twice.csv").write_text("x,x\n1,2\n")
    assert run(*arguments, "--memory", "1GB") == 2
    assert words in capsys.readouterr().err


def test_keys_of_other_kinds_with_memory(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    save([{"k": 1}], "a.csv")
    save([{"k": "x"}], "b.csv")
    save([{"k": None, "v": 1}], "c.csv")
    assert run("join", "a.csv", "b.csv", "--memory", "1GB") == 2
    assert "give --text" in capsys.readouterr().err
    assert run("join", "a.csv", "c.csv", "--how", "left", "-o", "d.csv", "--memory", "1GB") == 0
    assert rows_of("d.csv") == [("1", "")]


@pytest.mark.parametrize("verb", ["unique", "dedupe"])
def test_ctrl_c_with_memory(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    from warphash.stream import kept_rows, runs

    def interrupted(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    save(some_rows(900), "a.csv")
    Path("b.csv").write_text("old\n")
    monkeypatch.setattr(runs.Runs, "merged", interrupted)
    monkeypatch.setattr(kept_rows.KeptRows, "of", interrupted)
    assert run(verb, "a.csv", "-o", "b.csv", "--memory", "40kB") == 130
    assert "interrupted: b.csv is as it was" in capsys.readouterr().err
    assert Path("b.csv").read_text() == "old\n"


def test_a_long_step_shows_lines_in_a_pipe(
    run: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import time

    from warphash.cli import summary

    monkeypatch.setattr(summary, "_SECONDS", 0.01)
    read = library.unique
    monkeypatch.setattr(library, "unique", lambda *given, **options: (time.sleep(0.2), read(*given, **options))[1])
    save(some_rows(30), "a.csv")
    assert run("unique", "a.csv", "-o", "b.csv") == 0
    assert "unique: 0 s" in capsys.readouterr().err


def test_keys_of_other_kinds_in_parquet(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    save([{"k": 1}], "numbers.parquet")
    save([{"k": "x"}], "text.csv")
    for options in ((), ("--text",), ("--memory", "1GB")):
        for files in (("numbers.parquet", "text.csv"), ("text.csv", "numbers.parquet")):
            assert run("join", *files, "--on", "k", *options) == 2
            said = capsys.readouterr().err
            assert "write the column of numbers.parquet as text" in said and "give --text" not in said
    save([{"k": "x"}], "text.parquet")
    save([{"k": 1}], "numbers.csv")
    assert run("join", "numbers.csv", "text.parquet", "--on", "k") == 2
    assert "give --text" in capsys.readouterr().err
    assert run("join", "numbers.csv", "text.parquet", "--on", "k", "--text", "-o", "joined.csv") == 0
    assert rows_of("joined.csv") == []


def test_files_with_other_separators(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path("semicolons.csv").write_text("k;v\n1;2\n")
    save([{"k": 1}], "a.csv")
    for arguments in (("unique", "semicolons.csv", "--on", "k"), ("join", "semicolons.csv", "a.csv", "--on", "k")):
        assert run(*arguments) == 2
        assert "the columns are 'k;v'. The fields of a CSV file have commas" in capsys.readouterr().err
    assert run("join", "a.csv", "semicolons.csv") == 2
    assert "seem to have semicolons: write commas" in capsys.readouterr().err
    Path("tabs.csv").write_text("k\tv\n1\t2\n")
    assert run("unique", "tabs.csv", "--on", "k") == 2
    assert "or name a file with tabs .tsv" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz"])
@pytest.mark.parametrize("options", [(), ("--memory", "1GB")])
def test_files_with_tabs(run: Any, capsys: pytest.CaptureFixture[str], ending: str, options: tuple[str, ...]) -> None:
    data = b"k\tv\n1\ta,b\n2\tc\n1\td\n"
    Path(f"tabs.{ending}").write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    assert run("dedupe", f"tabs.{ending}", "--on", "k", "-o", "out.csv", *options) == 0
    assert rows_of("out.csv") == [("1", "a,b"), ("2", "c")]
    assert run("dedupe", f"tabs.{ending}", "-o", f"out.{ending}") == 2
    assert "expected a file .csv, .csv.gz or .parquet" in capsys.readouterr().err
