"""`warphash join`: the rows of two data files side by side, where their keys are equal."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, NamedTuple

import typer

from ..errors import ParameterError
from . import data_files
from .data_files import MEMORY, OUT, STANDARD, TEXT
from .ranks import DISTRIBUTED
from .summary import Work

__all__ = ["How", "Nulls", "Validate", "join"]


class How(StrEnum):
    """Which rows are in the answer."""

    INNER, LEFT, RIGHT, OUTER, SEMI, ANTI = "inner", "left", "right", "outer", "semi", "anti"


class Nulls(StrEnum):
    """Whether nulls equal each other."""

    UNEQUAL, EQUAL = "unequal", "equal"


class Validate(StrEnum):
    """On which sides a key is there once."""

    ONE_TO_ONE, ONE_TO_MANY, MANY_TO_ONE = "1:1", "1:m", "m:1"


_ONE_FILE: Any = {"help": "A file .csv, .csv.gz, .tsv or .parquet; - is CSV on standard input."}


def join(
    left: Annotated[str, typer.Argument(metavar="LEFT", **_ONE_FILE)],
    right: Annotated[str, typer.Argument(metavar="RIGHT", **_ONE_FILE)],
    on: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Columns that are compared, a,b or one by one; all that both files have."),
    ] = None,
    left_on: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Those of LEFT, where their names differ.")
    ] = None,
    right_on: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Those of RIGHT, in the same order.")
    ] = None,
    how: Annotated[
        How,
        typer.Option(
            help="Pairs of rows alone, or also rows of LEFT, of RIGHT or of both without a partner; semi: rows of LEFT "
            "with a partner, anti: without one."
        ),
    ] = How.INNER,
    suffixes: Annotated[
        str, typer.Option(metavar="L,R", help="Appended to other names that both files have, such as _x,_y.")
    ] = ",_right",
    nulls: Annotated[Nulls, typer.Option(help="Whether nulls are partners.")] = Nulls.UNEQUAL,
    validate: Annotated[
        Validate | None, typer.Option(help="Fail if a key repeats on a side that should have it once.")
    ] = None,
    out: Annotated[str, OUT] = STANDARD,
    text: Annotated[bool, TEXT] = False,
    memory: Annotated[str | None, MEMORY] = None,
    distributed: Annotated[bool, DISTRIBUTED] = False,
) -> None:
    """Join two files by columns.

    Rows come by rows of LEFT, and then by rows of RIGHT. Where a row has no partner, fields are empty.
    """
    from .. import merge

    work = Work(out)
    if not distributed:
        data_files.check_output(out)
    mine, comma, theirs = suffixes.partition(",")
    if not comma or "," in theirs:
        raise ParameterError(f"expected two suffixes with a comma between them, such as _x,_y, got {suffixes!r}")
    if left == right == STANDARD:
        raise ParameterError("LEFT and RIGHT are both standard input: give a file for one of them")
    if (left_on is None) != (right_on is None) or (on and left_on):
        raise ParameterError("expected --on, or --left-on and --right-on: give one of these")
    asked = _Keys(left, right, on, left_on, right_on)
    rules: dict[str, Any] = {"how": how.value, "suffixes": (mine, theirs), "nulls": nulls.value}
    if distributed:
        _share(asked, rules, work, out, memory=memory, validate=validate, text=text)
        return
    if memory is not None:
        if validate:
            raise ParameterError("--validate looks at all keys in memory: leave --memory out, or --validate")
        _stream(asked, rules, work, out, memory, text)
        return
    with work.step("read"):
        tables = [data_files.read([path], text=text) for path in (left, right)]
    keys = asked.chosen([table.column_names for table in tables])
    tables = _of_like_types(tables, keys, (left, right))
    with work.step("join"):
        rows = merge(
            tables[0],
            tables[1],
            left_on=keys[0],
            right_on=keys[1],
            validate=validate.value if validate else None,
            **rules,
        )
    with work.step("write"):
        data_files.write(rows, out)
    work.report(left_rows=len(tables[0]), right_rows=len(tables[1]), rows_out=len(rows))


class _Keys(NamedTuple):
    """What was asked for: files, and options with the names of their keys."""

    left: str
    right: str
    on: list[str] | None
    left_on: list[str] | None
    right_on: list[str] | None

    def chosen(self, names: list[list[str]]) -> tuple[list[str], list[str]]:
        """The keys of both files, whose columns have some names.

        Raises
        ------
        ParameterError
            If there are none, or not as many of both.
        """
        left_on, right_on = self.left_on, self.right_on
        if left_on is None or right_on is None:
            left_on = right_on = self.on if self.on else [name for name in names[0] if name in names[1]]
        if not left_on:
            hints = "".join(map(data_files.about_separators, names))
            raise ParameterError(
                f"{self.left} and {self.right} have no column in common: give --left-on and --right-on{hints}"
            )
        keys = (
            data_files.chosen(names[0], left_on, f"in {self.left}"),
            data_files.chosen(names[1], right_on, f"in {self.right}"),
        )
        if len(keys[0]) != len(keys[1]):
            raise ParameterError(
                f"expected as many names in --left-on as in --right-on, got {len(keys[0])} and {len(keys[1])}"
            )
        return keys


def _stream(asked: _Keys, rules: dict[str, Any], work: Work, out: str, memory: str, text: bool) -> None:
    from .. import stream
    from .data_streams import Streams

    with Streams(memory, out) as streams:
        with work.step("look", shown=False):
            sides = [streams.opened([path], text=text) for path in (asked.left, asked.right)]
        keys = asked.chosen([side.schema.names for side in sides])
        for names in zip(*keys, strict=True):
            named = list(zip(sides, names, strict=True))
            types = [side.schema.field(name).type for side, name in named]
            are_empty = [side.is_empty(name) for side, name in named]
            like = _like_types(names, types, are_empty, (asked.left, asked.right))
            for (side, name), type_ in zip(named, like, strict=True):
                side.retype(name, type_)
        with work.step("join", shown=False):
            answer = stream.join(sides[0], sides[1], left_on=keys[0], right_on=keys[1], **rules, **streams.means)
            written = streams.write(answer)
    work.report(left_rows=sides[0].rows, right_rows=sides[1].rows, rows_out=written)


def _share(asked: _Keys, rules: dict[str, Any], work: Work, out: str, **others: Any) -> None:
    from .ranks import Ranks

    with Ranks(work, [asked.left, asked.right], out, **others) as ranks:
        from ..distributed import datasets

        sides = [ranks.looked_at([path]) for path in (asked.left, asked.right)]
        keys = asked.chosen([names for names, _ in sides])
        with ranks.step("join"):
            written = datasets.join(asked.left, asked.right, left_on=keys[0], right_on=keys[1], out=out, **rules)
        ranks.report(left_rows=sides[0][1], right_rows=sides[1][1], rows_out=written)


def _of_like_types(tables: list[Any], keys: tuple[list[str], list[str]], paths: tuple[str, str]) -> list[Any]:
    """The tables, with keys that hold nothing in the type of the other side. Raises as `_like_types`."""
    made = list(tables)
    for names in zip(*keys, strict=True):
        columns = [table[name] for table, name in zip(tables, names, strict=True)]
        are_empty = [column.null_count == len(column) for column in columns]
        types = _like_types(names, [column.type for column in columns], are_empty, paths)
        for side, (name, column, type_) in enumerate(zip(names, columns, types, strict=True)):
            if column.type != type_:
                place = made[side].column_names.index(name)
                made[side] = made[side].set_column(place, name, made[side][name].cast(type_))
    return made


def _like_types(names: tuple[str, str], types: list[Any], are_empty: list[bool], paths: tuple[str, str]) -> list[Any]:
    """The types of a key of both sides: that of the other one for a column of nulls.

    Raises
    ------
    DtypeError
        If a key is text in one file and numbers in the other, as no row would have a partner.
    """
    from ..errors import DtypeError

    if _is_text(types[0]) == _is_text(types[1]):
        return types
    if are_empty[0]:
        return [types[1], types[1]]
    if are_empty[1]:
        return [types[0], types[0]]
    of_numbers = paths[1 if _is_text(types[0]) else 0]
    if data_files.is_csv(of_numbers):
        mend = "give --text, which takes all columns of CSV as text"
    else:
        mend = f"write the column of {of_numbers} as text, or numbers alone into the other file; --text is for CSV"
    raise DtypeError(
        f"column {names[0]!r} of the left file has type {types[0]}, and {names[1]!r} of the right one "
        f"{types[1]}, so no row would have a partner: {mend}"
    )


def _is_text(type_: Any) -> bool:
    import pyarrow as arrow

    kind = type_.value_type if arrow.types.is_dictionary(type_) else type_
    return any(test(kind) for test in (arrow.types.is_string, arrow.types.is_large_string, arrow.types.is_string_view))
