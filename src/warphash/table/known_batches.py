"""What compiled code does of small batches on a GPU (``src/extension/known_batch.hpp``, ``src/extension/find.hpp``).

A find of 1,000 keys is one launch, and so are most updates of as many. The usual way of a verb to its launch takes the
host longer than the launch takes the driver. So a table keeps what compiled code has to know of each type of arrays
that it was asked with. Compiled code then compares the arrays of a batch with that, finds their addresses, and makes
the arrays of the answer. It knows batches of one axis, if keys and values have the types of the table. What one table
knows serves all tables with the same facts and types.

Lookups of fewer than `lookups.FEWEST_PARTITIONED` keys are compiled to their launch, if keys and values are as
wide as the words of the table, no update has to be finished, and no CUDA graph captures the stream. All other batches
go the usual way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import sizeof
from typing import Any, NamedTuple

from ..arrays.library import MAX_ROWS, ArrayView
from ..arrays.row_type import Column
from ..storage.batch_order import lookups
from ..storage.rows import Rows
from ..storage.word_rows import WordRows
from .facts import Facts
from .front import Front

__all__ = ["KnownLookups", "See", "known_lookups", "known_updates", "share", "shared"]

See = Callable[..., tuple[Any, ...] | None]
"""Arrays of a batch -> arrays of the answer, number of elements, stream, addresses of both in this order; None for
arrays that are not known."""


class KnownLookups(NamedTuple):
    """Finds, or questions for presence, of one type of arrays.

    Attributes
    ----------
    see
        As `See`, of keys; the answer has values (None where only presence is asked for) and flags.
    launch
        ``launch(storage, absent, seen)`` answers the status of the driver; -1 if the storage, or what it is doing, is
        not known. ``absent`` is the value of an absent key. Its caller holds the table's lock.
    """

    see: See
    launch: Callable[[Any, int, tuple[Any, ...]], int]


def shared(facts: Facts, front: Front, *which: Any) -> Any:
    """What another table with the same facts and types knows, for the first batch of a table; None for nothing."""
    return facts.known.get((*which, *_types(front)))


def share(facts: Facts, front: Front, known: Any, *which: Any) -> None:
    """Let other tables with the same facts and types know what this one knows of arrays."""
    types = _types(front)
    if known is not None and types:
        facts.known[(*which, *types)] = known


def _types(front: Front) -> list[Any]:
    """The types of keys and values; none if some have no plain type, or an axis of their own."""
    columns = front.stored
    plain = all(type(column) is Column and not column.shape for column in columns)
    return [column.dtype for column in columns] if plain else []


def known_lookups(
    front: Front, storage: Rows, kind: type, keys: ArrayView, values: Column | None, found: Column
) -> KnownLookups | None:
    """The compiled lookups of arrays like ``keys``; None for arrays, tables and engines that have none.

    Parameters
    ----------
    kind
        Type of the arrays.
    values, found
        Of the arrays of the answer: ``values`` is None if only presence is asked for.
    """
    if type(storage) is not WordRows or storage.key_slack < 0:  # keys are narrower than words
        return None
    if not storage.answers_words(is_value=values is not None):
        return None
    most = lookups.FEWEST_PARTITIONED
    see = _see(front, kind, [keys], [front.key], [values, found], storage.key_slack, most)
    if see is None:
        return None
    batch = storage.store.state.array.batch_type
    fields = batch.n, batch.keys, batch.out_values, batch.out_flags, batch.default_value
    places = (*(field.offset for field in fields), sizeof(batch))
    return KnownLookups(see, front.engine.compiled.Find(WordRows, WordRows.loaded_find, places).launch)


def known_updates(front: Front, kind: type, pairs: Sequence[ArrayView], added: Column) -> See | None:
    """How compiled code sees batches for an update in arrays like ``pairs``; None where it does not.

    Parameters
    ----------
    kind
        Type of the arrays.
    pairs
        Keys, and values if the table has values.
    added
        Of the array of the answer.
    """
    if front.score is not None:
        return None
    return _see(front, kind, pairs, front.stored, [added], 0, MAX_ROWS + 1)


def _see(
    front: Front,
    kind: type,
    given: Sequence[ArrayView],
    columns: Sequence[Any],
    made: Sequence[Column | None],
    slack: int,
    fewer: int,
) -> See | None:
    """How compiled code sees arrays of some columns, all of one type; None if it does not know such arrays.

    Parameters
    ----------
    made
        Of the arrays of the answer; None for one that nobody asks for.
    slack
        The bits that are 0 in the addresses of given arrays.
    fewer
        A batch has fewer elements.
    """
    library: Any = given[0].library
    compiled = getattr(front.engine, "compiled", None)
    if compiled is None or not hasattr(library, "known") or any(view.library is not library for view in given):
        return None
    if any(type(column) is not Column or column.shape for column in [*columns, *filter(None, made)]):
        return None
    known = [library.known(view, column.dtype) for view, column in zip(given, columns, strict=True)]
    if known[0].kind is not kind:
        return None
    arrays = [compiled.KnownArrays(*each[:3]) for each in known]
    makers = [None if column is None else library.maker(given[0], column.dtype) for column in made]
    see: See = compiled.KnownBatch(arrays, known[0].stream, makers, slack, fewer).see
    return see
