"""Keys and values of up to 8 bytes: they lie in the slot itself, zero-extended to a word of 4 or 8 bytes."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedVerb
from .abi import Batch, Op, Table
from .elastic import ElasticStore
from .engine import Buffer, Engine
from .source import ROWS

__all__ = ["WordBacking"]


class WordBacking:
    """Packed rows in, packed rows out, on an `ElasticStore` of words.

    Parameters
    ----------
    key_bytes, value_bytes
        Width of a row, 1 to 8; ``value_bytes`` may be 0.
    """

    def __init__(self, elastic: ElasticStore, key_bytes: int, value_bytes: int) -> None:
        self.elastic = elastic
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self._word = elastic.store.spec.word_bytes
        self._rows = elastic.store.engine.program(ROWS)

    @property
    def _engine(self) -> Engine:
        return self.elastic.store.engine

    @property
    def nbytes(self) -> int:
        return self.elastic.store.nbytes

    def find(self, keys: int, n: int, values: int, flags: int, default: bytes, stream: Any) -> None:
        words = self._widened(keys, n, self.key_bytes, stream)
        direct = self.value_bytes == self._word or not values
        held = None if direct else self._engine.allocate(n * self._word, stream)
        out = values if held is None else held.ptr
        self.elastic.store.find(words[0], n, out, flags, int.from_bytes(default, "little"), stream)
        if held is not None:
            self._narrow(held.ptr, n, values, self.value_bytes, stream)

    def counts(self, keys: int, n: int, out: int, stream: Any) -> None:
        words = self._widened(keys, n, self.key_bytes, stream)
        self.elastic.store.find(words[0], n, 0, 0, 0, stream, counts=out)

    def update(
        self, keys: int, values: int, n: int, *, op: Op, kind: int, flags: int, unique: bool, stream: Any
    ) -> None:
        if kind & 0xFF == 2 and kind >> 8 not in (32, 64) and op not in (Op.KEEP, Op.REPLACE):
            raise UnsupportedVerb(f"upsert combines floats of 32 and 64 bits, not of {kind >> 8}: keep wider values")
        key_words = self._widened(keys, n, self.key_bytes, stream)
        value_words = self._widened(values, n, self.value_bytes, stream) if self.value_bytes else (0, None)
        self.elastic.update(
            key_words[0], value_words[0], n, op=op, kind=kind, flags=flags, unique=unique, stream=stream
        )

    def erase(self, keys: int, n: int, flags: int, stream: Any) -> None:
        words = self._widened(keys, n, self.key_bytes, stream)
        self.elastic.erase(words[0], n, flags, stream=stream)

    def execute(
        self, operations: int, keys: int, values: int, n: int, out: int, flags: int, default: bytes, stream: Any
    ) -> None:
        """A mixed batch on lists; see `ElasticLists.execute`."""
        elastic: Any = self.elastic
        key_words = self._widened(keys, n, self.key_bytes, stream)
        value_words = self._widened(values, n, self.value_bytes, stream) if values else (0, None)
        landing, held = self._landing(out, n, self.value_bytes, stream)
        elastic.execute(
            operations, key_words[0], value_words[0], n, landing, flags, int.from_bytes(default, "little"), stream
        )
        if held is not None:
            self._narrow(landing, n, out, self.value_bytes, stream)

    def scan(self, room: int, out_keys: int, out_values: int, stream: Any) -> int:
        keys = self._landing(out_keys, room, self.key_bytes, stream)
        values = self._landing(out_values, room, self.value_bytes, stream)
        found = self.elastic.store.scan(room, keys[0], values[0], stream)
        for (at, held), out, width in ((keys, out_keys, self.key_bytes), (values, out_values, self.value_bytes)):
            if held is not None:
                self._narrow(at, min(found, room), out, width, stream)
        return found

    def clear(self, stream: Any) -> None:
        self.elastic.clear(stream)

    def rebuild(self, keys: int, stream: Any) -> None:
        self.elastic.rebuild(keys, stream)

    def _landing(self, out: int, n: int, width: int, stream: Any) -> tuple[int, Buffer | None]:
        if not out or width == self._word:
            return out, None
        held = self._engine.allocate(n * self._word, stream)
        return held.ptr, held

    def _widened(self, rows: int, n: int, width: int, stream: Any) -> tuple[int, Buffer | None]:
        """Address of the rows as words, and what keeps that memory."""
        if width == self._word:
            return rows, None
        held = self._engine.allocate(n * self._word, stream)
        self._rows.run("widen", Table(), Batch(n=n, keys=rows, op=width, kind=self._word, out_keys=held.ptr), n, stream)
        return held.ptr, held

    def _narrow(self, words: int, n: int, rows: int, width: int, stream: Any) -> None:
        self._rows.run("narrow", Table(), Batch(n=n, keys=words, op=width, kind=self._word, out_keys=rows), n, stream)
