"""Lookups of small batches on a GPU by compiled code (``src/extension/lookups.hpp``).

A find of 1,000 keys is one launch. The usual way of a verb to its launch takes the host longer than the launch takes
the driver. So a table keeps what compiled code has to know of each type of arrays that it was asked with. Compiled code
answers batches of one axis, of fewer than `lookup_partition.FEWEST_PARTITIONED` keys, if keys and values are as wide as
the words of the table, no update has to be finished, and no CUDA graph captures the stream. All other batches go the
usual way.
"""

from __future__ import annotations

from ctypes import sizeof
from typing import TYPE_CHECKING, Any

from ..arrays.library import ArrayView
from ..arrays.row_type import Column
from ..storage import lookup_partition
from ..storage.codec import WordStorage
from ..storage.lookup import NO_FIELDS

if TYPE_CHECKING:
    from .base import BaseTable

__all__ = ["known_lookups"]


def known_lookups(table: BaseTable[Any], kind: type, keys: ArrayView, values: Column | None, found: Column) -> Any:
    """The compiled lookups of arrays like ``keys``; None for arrays, tables and engines that have none.

    Parameters
    ----------
    kind
        Type of the arrays.
    values, found
        Of the arrays of the answer: ``values`` is None if only presence is asked for.
    """
    library: Any = keys.library
    compiled, storage, key = getattr(table._engine, "compiled", None), table._storage, table._key
    if compiled is None or not hasattr(library, "known"):
        return None
    if (
        type(storage) is not WordStorage
        or type(key) is not Column
        or key.shape
        or (values is not None and values.shape)
    ):
        return None
    if not storage.answers_words(is_value=values is not None):
        return None
    known = library.known(keys, key.dtype)
    if known.kind is not kind:
        return None
    batch = storage.store.state.array.batch_type
    fields = batch.n, batch.keys, batch.out_values, batch.out_flags, batch.default_value
    return compiled.Lookups(
        compiled.KnownArrays(*known[:3]),
        known.stream,
        None if values is None else library.maker(keys, values.dtype),
        library.maker(keys, found.dtype),
        storage.key_slack,
        lookup_partition.FEWEST_PARTITIONED,
        WordStorage,
        NO_FIELDS,
        (*(field.offset for field in fields), sizeof(batch)),
    )
