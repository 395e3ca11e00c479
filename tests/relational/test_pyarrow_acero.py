"""pyarrow's own tests of joins and of group-by, with `warphash.join` and `warphash.group_by`.

pyarrow reads the tables and makes a plan. `join` takes the place of the plan's hash join: the rows of its pairs are
taken of both tables. `group_by` takes the place of an aggregation that has keys.

`docs/relational-peers.md` lists the tests that do not apply, with a reason for each. A test in that list has to fail.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import warphash
from support.peers import classes_of, expect_failure, lacking, modules_of, not_applicable

pa = pytest.importorskip("pyarrow", minversion="26", reason="the list is that of pyarrow 26")
pc = pytest.importorskip("pyarrow.compute")
acero = pytest.importorskip("pyarrow.acero")
acero_declaration = acero.Declaration
MODULES = modules_of("pyarrow.tests", {"Acero": "test_acero", "Plan": "test_exec_plan", "Table": "test_table"})
"""pyarrow's modules with tests of both, by the first part of the names that their classes have here."""
LISTED = not_applicable("pyarrow")

HOWS = {
    "inner": "inner",
    "left outer": "left",
    "right outer": "right",
    "full outer": "outer",
    "left semi": "semi",
    "left anti": "anti",
    "right semi": "semi",
    "right anti": "anti",
}
OPERATIONS = {
    "count_all": "size",
    **{name: name for name in ("count", "sum", "min", "max", "mean", "first", "any", "all")},
}
"""Operations of ours by pyarrow's names, which have ``hash_`` in front of them."""
calls: list[str] = []
"""The type of each join of ours, and the operations of each group-by."""


class HashJoinNodeOptions(acero.HashJoinNodeOptions):  # type: ignore[misc, name-defined]
    """pyarrow's options, which check the arguments and do not give them out."""

    def __init__(
        self,
        join_type: str,
        left_keys: Any,
        right_keys: Any,
        left_output: Any = None,
        right_output: Any = None,
        output_suffix_for_left: str = "",
        output_suffix_for_right: str = "",
        filter_expression: Any = None,
    ) -> None:
        outputs, suffixes = (left_output, right_output), (output_suffix_for_left, output_suffix_for_right)
        super().__init__(join_type, left_keys, right_keys, *outputs, *suffixes, filter_expression)
        if filter_expression is not None:
            raise NotImplementedError("join of warphash has no filter")
        self.join_type, self.keys, self.outputs, self.suffixes = join_type, (left_keys, right_keys), outputs, suffixes

    def joined(self, *tables: Any) -> Any:
        """The joined table."""
        calls.append(self.join_type)
        keys = [selected(table, names) for table, names in zip(tables, self.keys, strict=True)]
        sides = [side.column(0) if side.num_columns == 1 else tuple(side.columns) for side in keys]
        flipped = self.join_type in ("right semi", "right anti")
        left, right = warphash.join(*sides[:: -1 if flipped else 1], HOWS[self.join_type])
        rows = (right, left) if flipped else (left, right)
        parts = [
            selected(table, table.column_names if names is None else names).take(rows_or_null(each))
            for table, names, each in zip(tables, self.outputs, rows, strict=True)
            if each is not None
        ]
        names = [part.column_names for part in parts]
        for i, part in enumerate(parts[1:] and parts):
            suffix, others = self.suffixes[i], names[1 - i]
            parts[i] = part.rename_columns([name + suffix * (name in others) for name in names[i]])
        return pa.Table.from_arrays(
            [column for part in parts for column in part.columns],
            names=[name for part in parts for name in part.column_names],
        )


class AggregateNodeOptions(acero.AggregateNodeOptions):  # type: ignore[misc, name-defined]
    """pyarrow's options, which check the arguments and do not give them out."""

    def __init__(self, aggregates: Any, keys: Any = None) -> None:
        super().__init__(aggregates, keys)
        self.aggregates, self.keys = aggregates, keys

    def aggregated(self, table: Any) -> Any:
        """The table of the keys of groups and their answers."""
        keys = selected(table, self.keys)
        grouped = warphash.group_by(keys.column(0) if keys.num_columns == 1 else tuple(keys.columns))
        columns = [answer_of(grouped, table, *asked[:3]) for asked in self.aggregates]
        made = grouped.keys if keys.num_columns > 1 else (grouped.keys,)
        names = [*keys.column_names, *(asked[3] for asked in self.aggregates)]
        return pa.Table.from_arrays([*made, *columns], names=names)


def answer_of(grouped: Any, table: Any, target: Any, function: str, options: Any) -> Any:
    """What ours answer in place of one of pyarrow's functions."""
    name = function.removeprefix("hash_")
    if name == function:
        raise pa.ArrowInvalid(f"{function} is no hash aggregate function")  # as pyarrow
    if name not in OPERATIONS:
        raise NotImplementedError(f"group_by of warphash has no {name}")
    calls.append(name)
    counted = re.search(r"mode=(\w+)", str(options or "")) if name == "count" else None
    if OPERATIONS[name] == "size" or (counted and counted[1] == "ALL"):
        return grouped.size()
    (column,) = selected(table, target).columns
    if counted and counted[1] == "NULLS":
        return pc.subtract(grouped.size(), grouped.count(column))
    if options is not None and counted is None:
        raise NotImplementedError(f"group_by of warphash has no {options}")
    return grouped.agg(it=(column, OPERATIONS[name]))["it"]


def selected(table: Any, names: Any) -> Any:
    """Some columns, by names or expressions."""
    names = names if isinstance(names, list | tuple) else [names]
    try:
        return table.select(list(map(str, names)))
    except KeyError as error:
        raise pa.ArrowInvalid(str(error)) from error  # as pyarrow


def rows_or_null(rows: Any) -> Any:
    """Rows of a table, for `take`: null instead of -1, which takes nulls."""
    rows = np.asarray(rows)
    return pa.array(rows, mask=rows < 0)


class HashAggregation:
    """The end of a plan that aggregates by keys."""

    def __init__(self, source: Any, options: AggregateNodeOptions) -> None:
        self._source, self._options = source, options

    def to_table(self, use_threads: bool = True) -> Any:
        return self._options.aggregated(self._source.to_table(use_threads=use_threads))


class Declaration(acero.Declaration):  # type: ignore[misc, name-defined]
    """A node of a plan. A hash join is a node with the joined table."""

    @staticmethod
    def from_sequence(decls: Any) -> Any:
        *sources, last = decls
        options = getattr(last, "options", None)
        if isinstance(options, AggregateNodeOptions) and options.keys:
            return HashAggregation(acero_declaration.from_sequence(sources), options)
        return acero_declaration.from_sequence(decls)

    def __init__(self, factory_name: str, options: Any, inputs: Any = None) -> None:
        self.options = options
        if factory_name == "hashjoin":
            table = options.joined(*(source.to_table() for source in inputs))
            super().__init__("table_source", acero.TableSourceNodeOptions(table))
        else:
            super().__init__(factory_name, options, inputs)


@pytest.fixture(autouse=True)
def ours_in_place_of_theirs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for module in (acero, MODULES["Acero"]):
        for ours in (Declaration, HashJoinNodeOptions, AggregateNodeOptions):
            monkeypatch.setattr(module, ours.__name__, ours)
    calls.clear()
    if request.node.cls is not None:
        expect_failure(request, LISTED)


def is_ours(name: str, test: Any) -> bool:
    """Whether a test is about joins by equal keys, or about groups."""
    return ("join" in name and "asof" not in name) or "group_by" in name or "aggregate_hash" in name


CLASSES = classes_of(MODULES, is_ours)
globals().update(CLASSES)


@pytest.mark.parametrize("how", HOWS)
def test_a_join_takes_its_pairs_from_ours(how: str) -> None:
    table = pa.table({"k": [3, 1, 2]})
    joined = table.join(pa.table({"k": [2, 4, 3]}), "k", join_type=how)
    assert joined.num_rows == {"inner": 2, "full outer": 4, "left outer": 3, "right outer": 3}.get(
        how, 2 - ("anti" in how)
    )
    assert calls == [how]


def test_a_group_by_takes_its_answers_from_ours() -> None:
    table = pa.table({"k": [3, 1, 3], "v": [1, 2, None]})
    counts = [("v", "count", pc.CountOptions(mode=mode)) for mode in ("all", "only_null", "only_valid")]
    made = table.group_by("k").aggregate([("v", "sum"), ([], "count_all"), *counts])
    assert [column.to_pylist() for column in made.columns] == [[3, 1], [1, 2], [2, 1], [2, 1], [1, 0], [1, 1]]
    assert calls == ["sum", "count_all", "count", "count", "count"]


def test_every_test_that_is_listed_is_there() -> None:
    assert lacking(LISTED, CLASSES) == []
