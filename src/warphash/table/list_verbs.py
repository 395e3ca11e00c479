"""The verbs of tables whose buckets are lists, which every kind of table has: mixed batches, and upkeep."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import array_view as arrays
from ..arrays.row_type import Column
from ..errors import ParameterError, ShapeError, TableFull
from ..runtime.abi import Operation
from .base import BaseTable
from .options import buckets_of

__all__ = ["ListVerbs"]


class ListVerbs(BaseTable):
    """What maps, sets and multimaps share beyond `BaseTable`, where their design is one of lists."""

    def flush(self, buckets: int | slice | None = None) -> int:
        """Drop erased slots: pack the lists of buckets into as few nodes as hold their keys.

        The table does so by itself once there are more erased slots than keys.

        Parameters
        ----------
        buckets
            One, a slice without a step, or None for all.

        Returns
        -------
        int
            Nodes that are free now.

        Raises
        ------
        UnsupportedVerb
            If the buckets of the design are no lists.
        ParameterError
            If there is no such bucket.
        """
        self._need("flush")
        with self._lock.writing:
            elastic: Any = self._backing.elastic
            first, lists = buckets_of(buckets, elastic.store.buckets, elastic.store.lists)
            return int(elastic.flush(first, lists))

    def _execute(
        self, operations: Any, keys: arrays.ArrayView, values: Any, out: arrays.ArrayView | None, default: bytes
    ) -> Any:
        """A mixed batch: bool[n], what each operation did."""
        self._need("execute")
        n, stream = keys.rows, keys.stream
        given = [(Column(np.dtype(np.uint8), ()), operations, "operations")]
        if values is not None and self._value is not None:
            given.append((self._value, values, "values"))
        views = [self._transfer.here(column.view(array, what), what) for column, array, what in given]
        for view, (_, _, what) in zip(views, given, strict=True):
            if view.rows != n:
                raise ShapeError(f"keys and {what} must be of one length, got {n:,} keys and {view.rows:,} {what}")
        if (codes := views[0].host) is not None and n and codes.max() > max(Operation):
            raise ParameterError(f"operations are those of warphash.Operation, got {codes.max()}: nothing was done")
        if codes is not None and values is None and self._value is not None:
            writes = int(((codes == Operation.INSERT) | (codes == Operation.ASSIGN)).sum())
            if writes:
                raise ParameterError(f"inserts and assigns need values, got none for {writes:,}: nothing was done")
        done = arrays.empty_like_kind(keys, (n,), np.bool_, self._engine)
        with self._lock.writing:
            for view in views:
                if view.stream not in (None, stream):
                    self._engine.wait(view.stream)
            at, _keys = self._transfer.to_read(keys, stream)
            (operations_at, *values_at), _held = zip(*(self._transfer.to_read(v, stream) for v in views), strict=True)
            flags, flags_held = self._transfer.to_write(done, stream)
            found_at, found_held = (0, None) if out is None else self._transfer.to_write(out, stream)
            try:
                self._backing.execute(
                    operations_at, at, values_at[0] if values_at else 0, n, found_at, flags, default, stream
                )
            except TableFull as error:
                raise TableFull(str(error), self._transfer.on_host(keys, stream)[error.keys]) from None
            self._transfer.deliver(flags_held, done, stream)
            if out is not None:
                self._transfer.deliver(found_held, out, stream)
        return done.export()
