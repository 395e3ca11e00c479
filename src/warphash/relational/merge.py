"""`merge`: the rows of two frames side by side, where their keys are equal."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np

from ..errors import DtypeError, ParameterError
from .comparable import as_type_of
from .composites import rows_at
from .device_elements import DeviceElements
from .elements import Elements, concatenated, elements_of
from .frames import Frame, frame_of, named
from .items import Text
from .join import Validate, joined_rows
from .matches import How, JoinIndices, checked_how

__all__ = ["merge"]

Names = Hashable | Sequence[Hashable]


def merge(
    left: Any,
    right: Any,
    how: How = "inner",
    *,
    on: Names | None = None,
    left_on: Names | None = None,
    right_on: Names | None = None,
    suffixes: tuple[str, str] | None = None,
    nulls: Literal["unequal", "equal"] = "unequal",
    validate: Validate | None = None,
) -> Any:
    """Join two frames by columns.

    Parameters
    ----------
    left, right
        Frames of one library: of pandas, Polars or PyArrow, or mappings of names to arrays of one length. An array of
        several axes is taken by its rows, and is no key. Objects with ``__arrow_c_stream__``, such as relations of
        DuckDB, are Tables of PyArrow.
    how
        ``"inner"``: pairs of rows alone. ``"left"``: left rows without a partner, too; ``"right"``: right rows without
        one; ``"outer"``: both. ``"semi"``: left rows with a partner, once each; ``"anti"``: those without one.
    on
        Names of the columns that are compared, which both frames have. By default, all names that both have.
    left_on, right_on
        Such names of one frame each, in place of ``on``.
    suffixes
        What is appended to names that both frames have, but for the columns of ``on``. By default ``("_x", "_y")`` for
        frames of pandas, and ``("", "_right")`` for others.
    nulls
        As of `join`: ``"unequal"``, or ``"equal"`` as pandas has it.
    validate
        As of `join`.

    Returns
    -------
    frame
        Of the library of the frames: the columns of ``left``, and then those of ``right``. A column of ``on`` is there
        once. Rows come by left rows, and then by right rows; of ``"outer"``, right rows without a partner come behind
        these; of ``"right"``, rows come by right rows. Rows have new labels. ``"semi"`` and ``"anti"`` answer rows of
        ``left``, with their labels. Where a row has no partner, there are nulls.

    Raises
    ------
    ParameterError
        If there is no such column, or more than one; if two columns would have one name; for other suffixes; and as
        `join`.
    DtypeError
        For objects that are no frames; for frames of two libraries; if a column of keys of both sides has a type that
        lacks one of the keys; and as `join`.
    DeviceError, ShapeError, MemoryError
        As `join`; and `ShapeError` for mappings of arrays of several lengths.

    Notes
    -----
    O(n + m + p) for n and m rows and p pairs, and c items of p rows are copied for each of c columns.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> sold = {"shop": np.array([7, 3, 7]), "price": np.array([1.5, 4.0, 2.5])}
    >>> shops = {"shop": np.array([3, 7]), "town": np.array(["Ulm", "Bonn"])}
    >>> warphash.merge(sold, shops, on="shop")["town"]
    array(['Bonn', 'Ulm', 'Bonn'], dtype='<U4')
    """
    try:
        checked_how(how, "left")
    except ParameterError as error:
        raise ParameterError(f"{error}: names of columns are given as on=") from None
    if suffixes is not None and not _are_suffixes(suffixes):
        raise ParameterError(f"expected two texts in suffixes=, such as ('', '_right'), got {suffixes!r}")
    frames = frame_of(left), frame_of(right)
    if frames[0].library != frames[1].library:
        raise DtypeError(
            f"expected two frames of one library, got one of {frames[0].library} and one of {frames[1].library}: "
            "convert one of them"
        )
    keys = _keys(frames, on, left_on, right_on)
    elements, others = (rows_at(frame, places) for frame, places in zip(frames, keys, strict=True))
    rows = joined_rows(elements, others, how, nulls, validate)
    if how in ("semi", "anti"):
        return frames[0].taken(rows.left)
    return _side_by_side(frames, keys, rows, len(elements), how, suffixes)


def _are_suffixes(given: Any) -> bool:
    """Whether these are two texts. None is no text, as pandas has it."""
    is_pair = isinstance(given, list | tuple) and len(given) == 2
    return is_pair and all(each is None or isinstance(each, str) for each in given)


def _keys(
    frames: tuple[Frame, Frame], on: Names | None, left_on: Names | None, right_on: Names | None
) -> tuple[list[int], list[int]]:
    """The places of the columns that are compared, of each side."""
    left, right = frames
    if on is not None and (left_on is not None or right_on is not None):
        raise ParameterError("expected on=, or left_on= and right_on=, got on= with one of them: leave on= out")
    if (left_on is None) != (right_on is None):
        raise ParameterError("expected left_on= and right_on= together, got one of them: give both, or on=")
    if left_on is None or right_on is None:
        if on is None:
            others = right.names
            on = [name for name in left.names if name in others]
            if not on:
                raise ParameterError("the frames have no column in common: give on=, or left_on= and right_on=")
        left_on = right_on = on
    places = named(left.names, left_on, "left"), named(right.names, right_on, "right")
    if len(places[0]) != len(places[1]):
        raise ParameterError(
            f"expected as many names in left_on as in right_on, got {len(places[0])} and {len(places[1])}"
        )
    return places


def _side_by_side(
    frames: tuple[Frame, Frame],
    keys: tuple[list[int], list[int]],
    rows: JoinIndices,
    n: int,
    how: How,
    suffixes: tuple[str, str] | None,
) -> Any:
    left, right = frames
    names = left.names, right.names
    shared = {mine: theirs for mine, theirs in zip(*keys, strict=True) if names[0][mine] == names[1][theirs]}
    others = [place for place in range(len(names[1])) if place not in shared.values()]
    shown = _shown(names, shared, others, left.suffixes if suffixes is None else suffixes)
    made: dict[Any, Any] = {}
    is_whole = how == "left" and len(rows.left) == n  # each left row has one place, so it has its own
    for place, name in enumerate(shown[0]):
        if is_whole:
            made[name] = left.whole(left.column(place))
        elif place in shared and how in ("right", "outer"):
            made[name] = _either(left.column(place), right.column(shared[place]), rows)
        else:
            made[name] = _of_rows(left, place, rows.left, how in ("right", "outer"))
    for place, name in zip(others, shown[1], strict=True):
        made[name] = _of_rows(right, place, rows.right, how in ("left", "outer"))
    return left.made(made)


def _shown(
    names: tuple[list[Any], list[Any]], shared: dict[int, int], others: list[int], suffixes: tuple[str, str]
) -> tuple[list[Any], list[Any]]:
    """The names of the columns of the left side, and of those others of the right side."""
    mine = {name for place, name in enumerate(names[0]) if place not in shared}
    both = mine.intersection(names[1][place] for place in others)
    left = [
        f"{name}{suffixes[0]}" if name in both and place not in shared and suffixes[0] else name
        for place, name in enumerate(names[0])
    ]
    right = [
        f"{names[1][place]}{suffixes[1]}" if names[1][place] in both and suffixes[1] else names[1][place]
        for place in others
    ]
    all_names = [*left, *right]
    for name in all_names:
        if all_names.count(name) > 1:
            raise ParameterError(f"two columns would be named {name!r}: give other suffixes=, or rename one of them")
    return left, right


def _of_rows(frame: Frame, place: int, rows: Any, may_lack: bool) -> Any:
    """A column at some rows."""
    column = frame.column(place)
    if may_lack and len(rows) and bool((rows < 0).any()):
        return frame.with_nulls(column, rows)
    return elements_of(column, 0).taken(rows)


def _either(left: Any, right: Any, rows: JoinIndices) -> Any:
    """A column of keys: from the left side, or from the right one where no left row has the key.

    Raises
    ------
    DtypeError
        If the common type of both sides lacks a key, as float64 lacks 2^53 + 1.
    """
    both, behind = concatenated(left, right)
    types = [getattr(side, "dtype", getattr(side, "type", None)) for side in (left, right)]
    if None in types or types[0] != types[1]:
        for side in (left, right):
            _check_kept(side, both)
    places = rows.left + 0
    lacking = places < 0
    places[lacking] = rows.right[lacking] + behind
    return both.taken(places)


def _check_kept(side: Any, both: Elements) -> None:
    """Raise `DtypeError` if a common type of two columns has not all keys of one of them."""
    elements = elements_of(side)
    if isinstance(elements, DeviceElements) or isinstance(both, DeviceElements):
        return
    items, common = elements.items, both.items
    kinds = [each.array.dtype.kind for each in (items, common)]
    if isinstance(items, Text) or isinstance(common, Text) or kinds[0] not in "iu" or kinds[1] != "f":
        return
    compared = as_type_of(items, common)
    assert compared is not None
    fits = compared.fits if items.valid is None or compared.fits is None else compared.fits | ~items.valid
    if fits is not None and not fits.all():
        key, dtype = items.array[np.argmin(fits)], common.array.dtype
        raise DtypeError(
            f"expected keys that a common type of both sides has, and {dtype} has no {key}: convert the keys of one "
            f"side, as to {items.array.dtype}"
        )
