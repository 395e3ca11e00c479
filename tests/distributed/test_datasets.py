"""Verbs over Parquet files whose row groups are dealt to ranks, beside pandas with all rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .ranks import Ranks

pa = pytest.importorskip("pyarrow")

TYPES = ("number", "text", "real", "category", "both")


def rows_of(n: int, seed: int, *, heavy: bool = False) -> Any:
    """Rows with keys of some types, of which some are null, NaN or the heavy one; and their numbers."""
    chance = np.random.default_rng(seed)
    numbers = np.where(chance.random(n) < 0.1, chance.integers(0, 3_000, n), chance.integers(0, 150, n))
    if heavy:
        numbers[chance.random(n) < 0.9] = 5
    listed = numbers.tolist()
    return pa.table(
        {
            "number": pa.array([None if k == 8 else k * 1_000 for k in listed], pa.int64()),
            "text": pa.array([None if k == 8 else "t" * (k % 6) + str(k // 2) for k in listed], pa.string()),
            "real": pa.array([np.nan if k == 7 else None if k == 8 else k / 4 for k in listed], pa.float64()),
            "category": pa.array([f"c{k % 30}" for k in listed], pa.string()).dictionary_encode(),
            "row": np.arange(n) + seed * 1_000_000,
        }
    )


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    return written(tmp_path, "left", [(900, 100), (0, 1), (333, 50)], 1)


def written(folder: Path, name: str, files: list[tuple[int, int]], seed: int, *, heavy: bool = False) -> list[str]:
    """Files of so many rows, in row groups of so many."""
    from pyarrow import parquet

    paths = []
    for place, (n, at_once) in enumerate(files):
        paths.append(str(folder / f"{name}{place}.parquet"))
        parquet.write_table(rows_of(n, seed + place, heavy=heavy), paths[-1], row_group_size=at_once)
    return paths


def whole(paths: list[str]) -> Any:
    from pyarrow import parquet

    return pa.concat_tables([parquet.read_table(path) for path in paths]).unify_dictionaries()


def keys_of(kind: str) -> list[str]:
    return ["text", "real"] if kind == "both" else [kind]


def counted(table: Any) -> Counter[tuple[Any, ...]]:
    """Rows as objects of Python; NaN is a text."""
    columns = [["nan" if item != item else item for item in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True))


def call(verb: str, *arguments: Any) -> Any:
    """A verb of the data sets; the last argument may be a mapping of options."""
    from warphash.distributed import datasets

    *given, last = arguments
    if isinstance(last, dict):
        return getattr(datasets, verb)(*given, **last)
    return getattr(datasets, verb)(*arguments)


def parts(folder: str) -> Any:
    """The rows of all parts, which are as many as there are ranks."""
    from pyarrow import parquet

    found = sorted(Path(folder).iterdir())
    assert [path.name for path in found] == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    return pa.concat_tables(map(parquet.read_table, found))


def turns(paths: list[str], columns: Any) -> tuple[list[int], list[int], list[str]]:
    """The rows and their numbers that this rank reads. A collective verb is called in each turn."""
    import warphash.distributed as wd

    rows, numbers, names = [], [], []
    for table in wd.batches(paths, columns):
        wd.unique(np.arange(len(table)))
        rows.append(len(table))
        numbers += table["row"].to_pylist()
        names = table.column_names
    return rows, numbers, names


def test_all_ranks_make_as_many_turns_and_read_each_row_once(ranks: Ranks, files: list[str]) -> None:
    made = ranks.run(turns, files, ["row", "text"])
    assert {len(rows) for rows, _, _ in made} == {6}  # 9 and 7 row groups
    assert sum(0 in rows for rows, _, _ in made) == 2
    assert sorted(row for _, numbers, _ in made for row in numbers) == sorted(whole(files)["row"].to_pylist())
    assert all(numbers == sorted(numbers) for _, numbers, _ in made)
    assert made[0][2] == ["row", "text"]


@pytest.mark.parametrize("kind", TYPES)
def test_unique_rows_are_those_of_all_files(ranks: Ranks, files: list[str], kind: str, tmp_path: Path) -> None:
    keys = keys_of(kind)
    expected = Counter(list(counted(whole(files).select(keys))))
    made = ranks.run(call, "unique", files, keys)
    assert made[0].column_names == keys
    assert sum(map(counted, made), Counter()) == expected
    out = str(tmp_path / "out")
    assert set(ranks.run(call, "unique", files, keys, out)) == {len(expected)}
    assert counted(parts(out)) == expected


@pytest.mark.parametrize("kind", TYPES)
def test_counts_are_those_of_all_files(ranks: Ranks, files: list[str], kind: str, tmp_path: Path) -> None:
    keys = keys_of(kind)
    expected = counted(whole(files).select(keys))
    made = ranks.run(call, "count", files, keys, {"name": "times"})
    for table in made:
        assert table.column_names == [*keys, "times"]
        assert table["times"].to_pylist() == sorted(table["times"].to_pylist(), reverse=True)
    found = [row for table in made for row in counted(table)]
    assert len(found) == len(expected)
    assert {row[:-1]: row[-1] for row in found} == expected
    out = str(tmp_path / "empty")
    Path(out).mkdir()
    assert set(ranks.run(call, "count", files, keys, out)) == {len(expected)}
    assert {row[:-1]: row[-1] for row in counted(parts(out))} == expected


@pytest.mark.parametrize("kind", TYPES)
def test_groups_are_those_of_all_files(ranks: Ranks, files: list[str], kind: str, tmp_path: Path) -> None:
    import warphash

    keys = keys_of(kind)
    operations = {"count": "number", "sum": "number", "mean": "row", "min": "real", "max": "row", "any": "row"}
    agg = {"size": "size"} | {name: (column, name) for name, column in operations.items()}
    expected = counted(warphash.group_by(whole(files), keys).agg(**agg))
    made = ranks.run(call, "group_by", files, keys, agg, None, {"memory": "100MB"})
    assert made[0].column_names == [*keys, *agg]
    assert sum(map(counted, made), Counter()) == expected
    out = str(tmp_path / "out")
    assert set(ranks.run(call, "group_by", files, keys, agg, out)) == {len(expected)}
    assert counted(parts(out)) == expected


@pytest.mark.parametrize("keep", ["first", "last", False])
@pytest.mark.parametrize("kind", TYPES)
def test_the_rows_that_stay_are_those_of_one_process(
    ranks: Ranks, files: list[str], kind: str, keep: Any, tmp_path: Path
) -> None:
    import pandas as pd

    keys = keys_of(kind)
    table = whole(files)
    codes = [tuple(row) for row in zip(*(_plain(table[key]) for key in keys), strict=True)]
    stays = ~pd.Series(codes).duplicated(keep=keep)
    expected = set(np.asarray(table["row"])[stays].tolist())
    made = ranks.run(call, "dedupe", files, keys, keep, None, {"memory": "100MB"})
    assert all(part["row"].to_pylist() == sorted(part["row"].to_pylist()) for part in made)
    assert expected or kind == "category"
    assert {row for part in made for row in part["row"].to_pylist()} == expected
    assert sum(map(len, made)) == len(expected)
    out = str(tmp_path / "out")
    assert set(ranks.run(call, "dedupe", files, keys, keep, out)) == {len(expected)}
    assert counted(parts(out)) == sum(map(counted, made), Counter())


def _plain(column: Any) -> list[Any]:
    return ["nan" if item != item else item for item in column.to_pylist()]


@pytest.mark.parametrize("small_bytes", [1 << 24, 0], ids=["gathered", "exchanged"])
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer", "semi", "anti"])
@pytest.mark.parametrize("heavy", ["", "l", "r"])
def test_joined_rows_are_those_of_one_process(
    ranks: Ranks, how: Any, heavy: str, small_bytes: int, tmp_path: Path
) -> None:
    import warphash

    left = written(tmp_path, "left", [(300, 40), (33, 50)], 1, heavy="l" in heavy)
    right = written(tmp_path, "right", [(30, 7), (60, 100)], 5, heavy="r" in heavy)
    for kind in ("number", "category", "both"):
        for nulls in ("unequal", "equal"):
            rules = {"on": keys_of(kind), "how": how, "nulls": nulls}
            expected = warphash.merge(whole(left), whole(right), **rules)
            made = ranks.run(call, "join", left, right, {"small_bytes": small_bytes, **rules})
            assert made[0].column_names == expected.column_names
            assert sum(map(counted, made), Counter()) == counted(expected), (kind, nulls)
    out = str(tmp_path / "out")
    assert set(ranks.run(call, "join", left, right, {"out": out, **rules})) == {len(expected)}
    assert counted(parts(out)) == counted(expected)


def test_keys_of_two_sides_may_have_other_names_and_types(ranks: Ranks, tmp_path: Path) -> None:
    from pyarrow import parquet

    left, right = str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet")
    parquet.write_table(pa.table({"a": pa.array(range(100), pa.int32())}), left, row_group_size=9)
    parquet.write_table(pa.table({"b": pa.array([n / 2 for n in range(50)])}), right, row_group_size=9)
    made = ranks.run(call, "join", left, right, {"left_on": "a", "right_on": "b", "small_bytes": 0})
    assert sorted(row for table in made for row in table["a"].to_pylist()) == list(range(25))


def failure(verb: str, *arguments: Any) -> str:
    import warphash

    try:
        call(verb, *arguments)
    except warphash.CollectiveError as error:
        return str(error)
    return "nothing"


def failure_of_one(paths: list[str], out: str) -> str:
    """As `failure`, where one rank's file cannot be written."""
    import torch.distributed as dist

    import warphash.distributed.parts as parts

    write = parts.write_parquet
    if dist.get_rank() == 2:
        parts.write_parquet = lambda *arguments: 1 / 0  # type: ignore[assignment]
    try:
        return failure("unique", paths, "text", out)
    finally:
        parts.write_parquet = write


def test_a_folder_is_complete_or_absent(ranks: Ranks, files: list[str], tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    (text,) = set(ranks.run(failure_of_one, files, str(tmp_path / "out")))
    assert "failed on rank 2: ZeroDivisionError" in text
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("unique", "nowhere.parquet"), "nowhere.parquet is not there"),
        (("count", []), "a list of such paths"),
        (("unique", "FILES", "txt"), "did you mean 'text'"),
        (("count", "FILES", ["text", "row"], {"name": "row"}), "name="),
        (("dedupe", "FILES", "text", "most"), "keep must be"),
        (("unique", "FILES", "text", "FOLDER"), "has files"),
        (("group_by", "FILES", "text", {"agg": {"x": ("row", "first")}}), "over the rows of several ranks"),
        (("join", "FILES", "FILES", "text", "inside"), "how must be"),
    ],
    ids=lambda given: given[0] if isinstance(given, tuple) else "",
)
def test_what_is_wrong_is_an_error_on_all_ranks(
    ranks: Ranks, files: list[str], arguments: Any, said: str, tmp_path: Path
) -> None:
    given = [
        {"FILES": files, "FOLDER": str(tmp_path)}.get(each, each) if isinstance(each, str) else each
        for each in arguments
    ]
    (text,) = set(ranks.run(failure, *given))
    assert said in text


@pytest.mark.parametrize("sizes", [[], [3], [5, 5, 5, 5], [1, 9, 2, 8, 3, 7]])
def test_row_groups_are_dealt_by_size(sizes: list[int]) -> None:
    pytest.importorskip("torch")
    from warphash.distributed.datasets import dealt
    from warphash.stream.sources import RowGroup

    groups = [RowGroup(0, number, number * 10, 10, size) for number, size in enumerate(sizes)]
    shares = dealt(groups, 3)
    assert sorted(group for share in shares for group in share) == groups
    assert all(share == sorted(share) for share in shares)
    loads = sorted(sum(group.nbytes for group in share) for share in shares)
    assert loads[-1] - loads[0] <= max(sizes, default=0)
