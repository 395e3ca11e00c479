"""`warphash join`: the rows of two data files side by side, where their keys are equal."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from . import data_files
from .data_files import OUT, STANDARD, TEXT
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


_ONE_FILE: Any = {"help": "A file .csv, .csv.gz or .parquet; - is CSV on standard input."}


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
) -> None:
    """Join two files by columns.

    Rows come by rows of LEFT, and then by rows of RIGHT. Where a row has no partner, fields are empty.
    """
    from .. import merge
    from ..errors import ParameterError

    work = Work(out)
    data_files.check_output(out)
    mine, comma, theirs = suffixes.partition(",")
    if not comma or "," in theirs:
        raise ParameterError(f"expected two suffixes with a comma between them, such as _x,_y, got {suffixes!r}")
    if left == right == STANDARD:
        raise ParameterError("LEFT and RIGHT are both standard input: give a file for one of them")
    if (left_on is None) != (right_on is None) or (on and left_on):
        raise ParameterError("expected --on, or --left-on and --right-on: give one of these")
    with work.step("read"):
        tables = [data_files.read([path], text=text) for path in (left, right)]
    names = [table.column_names for table in tables]
    if left_on is None or right_on is None:
        left_on = right_on = on if on else [name for name in names[0] if name in names[1]]
    if not left_on:
        raise ParameterError(f"{left} and {right} have no column in common: give --left-on and --right-on")
    keys = (
        data_files.chosen(names[0], left_on, f"in {left}"),
        data_files.chosen(names[1], right_on, f"in {right}"),
    )
    if len(keys[0]) != len(keys[1]):
        raise ParameterError(
            f"expected as many names in --left-on as in --right-on, got {len(keys[0])} and {len(keys[1])}"
        )
    tables = _of_like_types(tables, keys)
    with work.step("join"):
        rows = merge(
            tables[0],
            tables[1],
            how.value,
            left_on=keys[0],
            right_on=keys[1],
            suffixes=(mine, theirs),
            nulls=nulls.value,
            validate=validate.value if validate else None,
        )
    with work.step("write"):
        data_files.write(rows, out)
    work.report(left_rows=len(tables[0]), right_rows=len(tables[1]), rows_out=len(rows))


def _of_like_types(tables: list[Any], keys: tuple[list[str], list[str]]) -> list[Any]:
    """The tables, with keys that hold nothing in the type of the other side.

    Raises
    ------
    DtypeError
        If a key is text in one file and numbers in the other, as no row would have a partner.
    """
    from ..errors import DtypeError

    made = list(tables)
    for names in zip(*keys, strict=True):
        left, right = (table[name] for table, name in zip(tables, names, strict=True))
        if _is_text(left.type) == _is_text(right.type):
            continue
        empty = [side for side, column in enumerate((left, right)) if column.null_count == len(column)]
        if not empty:
            raise DtypeError(
                f"column {names[0]!r} of the left file has type {left.type}, and {names[1]!r} of the right one "
                f"{right.type}, so no row would have a partner: give --text, which takes all columns of CSV as text"
            )
        side = empty[0]
        place = made[side].column_names.index(names[side])
        type_ = (right, left)[side].type
        made[side] = made[side].set_column(place, names[side], made[side][names[side]].cast(type_))
    return made


def _is_text(type_: Any) -> bool:
    import pyarrow as arrow

    kind = type_.value_type if arrow.types.is_dictionary(type_) else type_
    return any(test(kind) for test in (arrow.types.is_string, arrow.types.is_large_string, arrow.types.is_string_view))
