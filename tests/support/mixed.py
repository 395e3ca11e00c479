"""Run mixed batches on a few keys, and check that each batch is linearizable."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np

from support.cases import Case, MultiCase
from support.histories import ABSENT, UNPLACED, State, explains, explains_bag, explains_queue, wrong_keys
from support.inside import storage_of
from support.multi_model import MultiModel
from support.types import Array, as_bytes, as_type, row_bytes
from warphash import Operation, TableFull
from warphash.storage.batch import MixedBatch

DEFAULT = 0
"""The value of an answer without a value. No operation writes it."""


class Recorder:
    """A table, and its content after the last batch.

    Parameters
    ----------
    table
        An empty table.
    """

    def __init__(self, case: Case, table: Any) -> None:
        self.case, self.table = case, table
        self.is_multi = isinstance(case, MultiCase)
        of_pairs = explains_bag if case.parameters.get("reuse_erased") else explains_queue
        self.explained: tuple[Any, State] = (of_pairs, ()) if self.is_multi else (explains, ABSENT)
        self.pairs: dict[bytes, State] = {}
        self.written = 0
        self.full = 0

    def values(self, n: int) -> Array | None:
        """Values that were never written before. All words of a value are equal, so that a torn value can be told."""
        if self.case.is_set:
            return None
        first = self.written + 1
        self.written += n
        words = np.arange(first, first + n, dtype="<u4").view(np.uint8).reshape(n, 4)
        width = row_bytes(self.case.value_dtype)
        return as_type(np.tile(words, -(-width // 4))[:, :width], self.case.value_dtype)

    def execute(self, operations: Array, keys: Array) -> None:
        """Run one batch. Fail if no order of its operations explains the answers and the content of the table."""
        values, before = self.values(len(keys)), self.pairs
        found, flags = self._answers(operations, keys, values)
        self.pairs = self._held()
        wrong = wrong_keys(operations, keys, values, found, flags, before, self.pairs, *self.explained)
        assert not wrong, f"{len(wrong)} keys have answers that no order explains, the first: {wrong[0]}"
        if found is not None:
            has_none = (operations != Operation.FIND) | (flags != 1)
            blank = np.ascontiguousarray(found[has_none]).view(np.uint8)
            assert (blank == DEFAULT).all(), "an operation that is no find, or in vain, has a value"

    def _answers(self, operations: Array, keys: Array, values: Array | None) -> tuple[Array | None, Array]:
        """The answers of a batch. If the batch does not fit, they are read from the engine's memory."""
        store, of_failed = storage_of(self.table).store, []
        whole = store.execute

        def execute(batch: MixedBatch, stream: Any) -> None:
            try:
                whole(batch, stream)
            except TableFull:
                engine = store.array.engine
                of_failed.append(engine.to_host(batch.flags, np.uint8, batch.n, stream))
                if values is not None:
                    of_failed.append(self._rows_at(batch.out_values, batch.n))
                raise

        with mock.patch.object(store, "execute", execute):
            try:
                if self.case.is_set:
                    return None, self.table.execute(operations, keys).astype(np.uint8)
                found, flags = self.table.execute(operations, keys, values, default=DEFAULT)
                return found, flags.astype(np.uint8)
            except TableFull as error:
                self.full += 1
                flags, *rest = of_failed
                left = keys[flags == UNPLACED]
                assert len(left) and as_bytes(error.keys) == as_bytes(left), (
                    "TableFull names other keys than it left out"
                )
                return (rest[0] if rest else None), flags

    def _rows_at(self, words: int, n: int) -> Array:
        """``n`` values that lie in the engine's memory, as a store keeps them."""
        array, dtype = storage_of(self.table).store.array, self.case.value_dtype
        width = array.spec.value_word_bytes
        raw = array.engine.to_host(words, np.uint8, n * width).reshape(n, width)
        return as_type(raw[:, : row_bytes(dtype)], dtype)

    def drawn(self, keys: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw operations on a few of ``keys``, in random proportions."""
        known = [operation for operation in Operation if not self.is_multi or operation != Operation.ASSIGN]
        few = rng.choice(keys, rng.integers(2, len(keys) + 1), replace=False)
        operations = rng.choice(known, n, p=rng.dirichlet([1.0] * len(known))).astype(np.uint8)
        return operations, rng.choice(few, n)

    def erase_everything(self, keys: Array) -> None:
        """Erase all pairs of ``keys``, one of each key in a batch."""
        most = max(map(len, self.pairs.values())) if self.is_multi else 1
        for _ in range(most):
            self.execute(np.full(len(keys), Operation.ERASE, np.uint8), keys)
        assert not self.pairs

    def _held(self) -> dict[bytes, State]:
        if self.is_multi:
            model = MultiModel()
            model.read(self.table)
            return {name: tuple(values) for name, values in model.values.items()}
        if self.case.is_set:
            keys, values = self.table.keys(), None
        else:
            keys, values = self.table.to_arrays()
        names = as_bytes(keys)
        assert len(set(names)) == len(names), "a key is stored twice"
        return dict(zip(names, [b""] * len(names) if values is None else as_bytes(values), strict=True))
