"""The table of an example beside its model: calls a verb on both, and compares what the table answers.

A lookup is right if it answers as the model does. An update is right if the model allows its answer, or if it raises a
`WarphashError` (or MemoryError) and leaves the table as it was. An error of any other library is a finding.
"""

from __future__ import annotations

import importlib
import pickle
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fuzz.containers import NUMPY, VIEWS, as_numpy, contained, installed, must_be_taken, odd_scalars
from fuzz.example import Broken, Example, require
from fuzz.key_types import Batch, KeyType, plain_of
from fuzz.oracle import PairModel, Plain
from warphash import HashMap, HashSet, Operation, ShapeError, TableFull, UnsupportedVerb, WarphashError
from warphash.designs import registry

__all__ = ["VALUE_TYPES", "Given", "Subject", "rows_of"]

STR: np.dtype[Any] = np.dtype("str")
"""Strings of any length."""

VALUE_TYPES: list[Any] = [
    *(np.dtype(name) for name in ("u4", "i8", "f4", "f8", "u1", "i2", "S7", "V48", "m8[s]")),
    np.dtype(("f4", (5,))),
    np.dtype([("a", "i4"), ("b", "S3")]),
    STR,
]
OPS = {"i": ["add", "min", "max", "or", "and", "xor", "first", "last"], "f": ["min", "max", "first", "last"]}
OPS |= {"u": OPS["i"], "U": ["first", "last"]}


class Given(NamedTuple):
    """A batch of keys in a container.

    Attributes
    ----------
    keys, plains
        The container, and what it holds.
    container
        Its name.
    same_type
        Whether the keys are of the table's own type.
    """

    keys: Any
    plains: list[Plain]
    container: str
    same_type: bool

    def __str__(self) -> str:
        kind = "table's type" if self.same_type else f"other type ({getattr(self.keys, 'dtype', '?')})"
        return f"{len(self.plains)} keys, {self.container}, {kind}"


def rows_of(values: Any, dtype: np.dtype[Any]) -> list[bytes]:
    """The bytes of each row of an array of values."""
    if dtype == STR:
        to_list = next(name for name in ("to_pylist", "to_list", "tolist") if hasattr(values, name))
        return [text.encode() for text in np.array(getattr(values, to_list)(), object).reshape(-1)]
    array = np.asarray(as_numpy(values))
    if array.dtype != dtype.base:
        array = array.astype(dtype.base)
    content, width = np.ascontiguousarray(array).tobytes(), dtype.itemsize
    return [content[at : at + width] for at in range(0, len(content), width)]


class Subject:
    """A table, its model, and the keys that an example draws from.

    Attributes
    ----------
    containers
        Names of the containers that keys come in; None for all.
    around
        Makes the context that each call runs in, such as one that refuses memory.
    """

    containers: list[str] | None = None
    around: Callable[[], AbstractContextManager[Any]] = nullcontext

    def __init__(self, example: Example, key: KeyType, value: np.dtype[Any] | None, **options: Any) -> None:
        self.example, self.key, self.value, self.model = example, key, value, PairModel()
        self.rule = key.options.get("floats", "")
        self.pool = key.pool(example, example.choose([3, 30, 30, 100, 1000]))
        self.options = {
            "design": example.design,
            "device": "cpu",
            "seed": example.between(0, 2**32),
            **({"capacity": example.choose([0, 10, 5000])} if example.happens(0.5) else {}),
            **key.options,
            **options,
        }
        example.note(f"{'HashSet' if value is None else 'HashMap'}({key.spec!r}, {value}, {self.options})")
        self.table: Any = (HashSet if value is None else self._map)(key.spec, **self.options)

    def _map(self, spec: Any, **options: Any) -> Any:
        return HashMap(spec, self.value, **options)

    # ---- what is given
    def given(self, *, others: bool) -> Given:
        """A random batch, of another type at times if ``others``."""
        example = self.example
        n = example.choose([0, 1, 2, 7, 7, 40, len(self.pool)])
        plains: list[Plain] = [example.choose(self.pool) for _ in range(n)]
        if others and self.key.others is not None and example.happens(0.4):
            batch: Batch = self.key.others(example, plains)
            array, plains, same = batch.array, batch.plains, False
        else:
            array, same = self.key.array(plains), True
        if not len(plains):
            array, plains, same = self.key.array([]), [], True
        names = ["list"] if isinstance(self.key.spec, list) else self.containers  # rows of columns are tuples
        keys, container = contained(example, array, names)
        if not len(plains) and isinstance(keys, list | tuple) and not self._has_any_length:
            keys, container = array, "numpy"  # an empty list has no type
        return Given(keys, plains, container, same)

    @property
    def _has_any_length(self) -> bool:
        spec = self.key.spec
        return isinstance(spec, list) or spec in ("str", "bytes") or "nulls" in self.key.options

    def values(self, n: int) -> tuple[Any, list[bytes]]:
        """Random values for a batch, in a container, and their bytes."""
        assert self.value is not None
        base, shape = self.value.subdtype or (self.value, ())
        example = self.example
        if base == STR:
            return self._texts(n)
        if base.kind == "f":
            array = example.rng.integers(-9, 99, (n, *shape)).astype(base)
        elif base.kind in "iu":
            array = example.rng.integers(0, 100, (n, *shape)).astype(base)
        elif base.kind == "m":
            array = example.rng.integers(0, 10**9, n).view(base)
        elif base.names is not None:
            array = np.zeros(n, base)
            array["a"], array["b"] = example.rng.integers(0, 9, n), b"xyz"
        else:
            raw = example.rng.integers(1, 127, (n, base.itemsize), dtype=np.uint8)
            array = np.ascontiguousarray(raw).reshape(-1).view(base)
        rows = rows_of(array, self.value)
        given, _ = contained(example, array, VIEWS) if base.kind in "iuf" and n else (array, "")
        return given, rows

    def _texts(self, n: int) -> tuple[Any, list[bytes]]:
        """Random strings in a container, and their bytes."""
        example = self.example
        letters = list("ab\0é漢 Z")
        texts = ["".join(example.rng.choice(letters, example.choose([0, 1, 3, 30]))) for _ in range(n)]
        rows = [text.encode() for text in texts]
        given: Any = texts
        match example.choose(["list", "objects", "array", "pyarrow"]):
            case "objects":
                given = np.array(texts, object)
            case "array" if hasattr(np.dtypes, "StringDType"):
                given = np.array(texts, np.dtypes.StringDType())
            case "pyarrow" if installed("pyarrow"):
                given = importlib.import_module("pyarrow").array(texts, "string")
        return given, rows

    # ---- calls
    def call(self, verb: Callable[[], Any]) -> Any:
        """Call a verb of the table in the surroundings of the example."""
        with self.around():
            return verb()

    def ask(self, verb: str, given: Given, call: Callable[[], Any]) -> Any:
        """The answer of a lookup; None if the lookup may refuse the container, and does."""
        self.example.note(f"{verb}: {given}")
        try:
            return self.call(call)
        except (WarphashError, KeyError) as error:
            self._may_refuse(verb, given, error)
        return None

    def change(self, verb: str, given: Given, call: Callable[[], Any]) -> Any:
        """The answer of an update; None if it was refused, with the table as it was. A `MemoryError` passes."""
        self.example.note(f"{verb}: {given}")
        try:
            return self.call(call)
        except WarphashError as error:
            self.check(f"{verb} that was refused")
            if not self._fits(given):
                return None
            self._may_refuse(verb, given, error)
        return None

    def _fits(self, given: Given) -> bool:
        """Whether the table's type has all keys."""
        if given.same_type:
            return True
        try:
            made = self.key.array(given.plains)
        except (OverflowError, ValueError, TypeError):
            return False
        return plain_of(made, self.rule) == given.plains

    def _may_refuse(self, verb: str, given: Given, error: Exception) -> None:
        """Raise `Broken` if a call must take such a batch, and `TableFull` as it is."""
        if isinstance(error, TableFull):
            raise error
        if isinstance(error, UnsupportedVerb):
            return
        if self.value is not None and self.value.kind not in "iuf" and given.container not in NUMPY:
            return  # whose library may have no column of such values
        dtype = None if self._has_any_length else np.dtype(self.key.spec)
        if must_be_taken(given.container, dtype) and (given.same_type or not self.rule):
            which = "table's type" if given.same_type else "another type"
            detail = f"{verb}, table of {self.key.name}, {given}: {error}"
            raise Broken(f"{given.container} of {which} is refused", detail)

    # ---- lookups
    def contains(self) -> None:
        given = self.given(others=True)
        answer = self.ask("contains", given, lambda: self.table.contains(given.keys))
        if answer is not None:
            self.model.contained(given.plains, as_numpy(answer).reshape(-1).tolist())

    def find(self) -> None:
        if self.value is None:
            return self.contains()
        given = self.given(others=True)
        answer = self.ask("find", given, lambda: self.table.find(given.keys))
        if answer is not None:
            flags = as_numpy(answer[1]).reshape(-1).tolist()
            self.model.found(given.plains, rows_of(answer[0], self.value), flags, bytes(self.value.itemsize))

    def find_in_any_order(self) -> None:
        if self.value is None:
            return
        given = self.given(others=False)
        answer = self.ask("find in any order", given, lambda: self.table.find(given.keys, order="any"))
        if answer is not None and given.container == "numpy" and isinstance(answer[0], np.ndarray):
            keys = plain_of(answer[0], self.rule)
            require(sorted(map(repr, keys)) == sorted(map(repr, given.plains)), "find in any order: other keys")
            self.model.found(keys, rows_of(answer[1], self.value), answer[2].tolist(), bytes(self.value.itemsize))

    def one_key(self) -> None:
        """The verbs of a single key, which may be any Python object."""
        example = self.example
        plain = example.choose(self.pool)
        key = self.key.array([plain])[0]
        if example.happens(0.4):
            key = example.choose(odd_scalars())
            example.note(f"{key!r} in table")
            try:
                answer = key in self.table
            except ShapeError:
                require(isinstance(key, range), "in: a single object is no batch", repr(key))
                return
            require(isinstance(answer, bool), "in: no bool", answer)
            if self.value is not None:
                with suppress(WarphashError):
                    self.table.get(key)
            if isinstance(key, int) and all(isinstance(each, int) for each in self.pool):
                self.model.contained([key], [answer], "in")
            return
        example.note(f"{key!r} in table")
        self.model.contained([plain], [key in self.table], "in")
        if self.value is not None:
            held = self.table.get(key)
            require((held is not None) == (plain in self.model.pairs), "get: wrong presence", repr(key))
            if held is not None:
                row = [held.encode()] if self.value == STR else rows_of(np.asarray(held, self.value.base), self.value)
                self.model.found([plain], row, [True], b"")

    # ---- updates
    def insert(self) -> None:
        self._update("insert", lambda keys, values: self.table.insert(keys, *values), self.model.inserted)

    def find_or_insert(self) -> None:
        if self.value is None:
            return
        given, values, rows = self._pairs()
        answer = self.change("find_or_insert", given, lambda: self.table.find_or_insert(given.keys, *values))
        if answer is not None:
            self.model.inserted(given.plains, rows, as_numpy(answer[1]).reshape(-1).tolist())
            held = rows_of(answer[0], self.value)
            self.model.found(given.plains, held, [True] * len(held), b"")

    def number(self) -> None:
        """New keys get the next numbers, in the order of first appearance. Values are wide enough for these."""
        if self.value is None or self.value.kind not in "iu" or self.value.itemsize < 4:
            return
        given, first = self.given(others=True), self.example.choose([0, 0, 7])
        answer = self.change("number", given, lambda: self.table.number(given.keys, first=first))
        if answer is None:
            return
        rows, new = rows_of(answer[0], self.value), as_numpy(answer[1]).reshape(-1).tolist()
        for plain, row, is_new in zip(given.plains, rows, new, strict=True):
            require(is_new == (plain not in self.model.pairs), "number: wrong presence", repr(plain))
            number = np.array(first + len(self.model.pairs), self.value).tobytes()
            require(row == self.model.pairs.setdefault(plain, number), "number: wrong number", repr(plain))

    def assign(self) -> None:
        if self.value is None:
            return
        self._update("assign", lambda keys, values: self.table.assign(keys, *values), self._assigned)

    def _assigned(self, plains: list[Plain], rows: list[bytes], flags: list[bool]) -> None:
        self.model.assigned(plains, rows, flags, self._held(plains))

    def _held(self, plains: list[Plain]) -> list[bytes]:
        assert self.value is not None
        if not plains:
            return []
        values, found = self.table.find(self.key.array(plains))
        require(np.asarray(found).all(), "an updated key is absent")
        return rows_of(values, self.value)

    def upsert(self) -> None:
        if self.value is None or self.value.kind not in OPS:
            return
        op = self.example.choose(OPS[self.value.kind])
        given, values, rows = self._pairs()
        answer = self.change(f"upsert {op}", given, lambda: self.table.upsert(given.keys, *values, op))
        if answer is not None:
            flags = as_numpy(answer).reshape(-1).tolist()
            self.model.upserted(given.plains, rows, op, self.value, flags)

    def _pairs(self) -> tuple[Given, list[Any], list[bytes]]:
        given = self.given(others=True)
        if self.value is None:
            return given, [], [b""] * len(given.plains)
        values, rows = self.values(len(given.plains))
        return given, [values], rows

    def _update(self, verb: str, call: Any, follow: Any) -> None:
        given, values, rows = self._pairs()
        answer = self.change(verb, given, lambda: call(given.keys, values))
        if answer is not None:
            require(self._fits(given), f"{verb} takes keys that the type cannot represent", given)
            follow(given.plains, rows, as_numpy(answer).reshape(-1).tolist())

    def erase(self) -> None:
        given = self.given(others=True)
        answer = self.change("erase", given, lambda: self.table.erase(given.keys))
        if answer is not None:
            self.model.erased(given.plains, as_numpy(answer).reshape(-1).tolist())

    def pop(self) -> None:
        if self.value is None:
            return self.erase()
        given = self.given(others=False)
        before = [self.model.pairs.get(key, bytes(self.value.itemsize)) for key in given.plains]
        answer = self.change("pop", given, lambda: self.table.pop(given.keys, 0))
        if answer is not None:
            require(rows_of(answer, self.value) == before, "pop: wrong values")
            for key in given.plains:
                self.model.pairs.pop(key, None)

    def update(self) -> None:
        """Take the pairs of another table."""
        example = self.example
        twin = self.table.copy()
        twin.clear()
        given = self.given(others=False)
        if given.container != "numpy" or not given.plains:
            return
        if self.value is None:
            twin.insert(given.keys)
            self.example.note(f"|= {given}")
            self.call(lambda: self.table.__ior__(twin))
            self.model.pairs.update(dict.fromkeys(given.plains, b""))
        else:
            values, _ = self.values(len(given.plains))
            twin.assign(given.keys, values)
            example.note(f"update: {given}")
            self.call(lambda: self.table.update(twin))
            held, _ = twin.find(given.keys)
            self.model.pairs.update(zip(given.plains, rows_of(held, self.value), strict=True))

    def execute(self) -> None:
        """A mixed batch in which each key stands once, so there is one right answer."""
        if "execute" not in registry.get(self.example.design).capabilities or self._has_any_length or self.rule:
            return
        plains = list(dict.fromkeys(self.example.choose(self.pool) for _ in range(20)))
        codes = [int(self.example.choose(list(Operation))) for _ in plains]
        operations, keys = np.array(codes, "u1"), self.key.array(plains)
        values, rows = ([], [b""] * len(plains)) if self.value is None else self.values(len(plains))
        present = self.model.presence(plains)
        given = Given(keys, plains, "numpy", True)
        pairs = [] if self.value is None else [values]

        def execute() -> Any:
            try:
                return self.table.execute(operations, keys, *pairs)
            except TableFull as error:  # all operations but those of its keys are done
                return error

        answer = self.change("execute", given, execute)
        if answer is None:
            return
        left: list[Any] = []
        if isinstance(answer, TableFull):
            left, done = plain_of(np.asarray(answer.keys), self.rule), [None] * len(plains)
        else:
            done = as_numpy(answer if self.value is None else answer[1]).tolist()
        for code, key, row, there, did in zip(codes, plains, rows, present, done, strict=True):
            if key in left:
                continue
            adds = code in (Operation.INSERT, Operation.ASSIGN)
            right = did is None or did == (there != adds)
            require(right, "execute: wrong answer", f"{Operation(code).name} of {key!r}: {did}")
            if code == Operation.ASSIGN or (code == Operation.INSERT and not there):
                self.model.pairs[key] = row
            elif code == Operation.ERASE:
                self.model.pairs.pop(key, None)

    def plan(self) -> None:
        """A plan for arrays of the table's own type."""
        if self._has_any_length or self.rule or self.value == STR:
            return
        plains = [self.example.choose(self.pool) for _ in range(self.example.between(0, 30))]
        keys = self.key.array(plains)
        plan = self.table.plan(len(plains), like="numpy")
        self.example.note(f"plan of {len(plains)} keys")
        if self.value is None:
            self.model.inserted(plains, [b""] * len(plains), self.call(lambda: plan.insert(keys)).tolist())
            return
        values, rows = self.values(len(plains))
        values = np.frombuffer(b"".join(rows), self.value).copy() if plains else np.empty(0, self.value)
        self.model.inserted(plains, rows, self.call(lambda: plan.insert(keys, values)).tolist())
        held, found = plan.find(keys)
        self.model.found(plains, rows_of(held, self.value), found.tolist(), b"")

    def erase_if(self) -> None:
        if self.value is None or self.value.kind not in "iuf":
            return
        bound = self.example.between(-5, 105)
        self.example.note(f"erase_if values < {bound}")
        n = self.call(lambda: self.table.erase_if("values", "<", bound))
        kept = {key: row for key, row in self.model.pairs.items() if np.frombuffer(row, self.value)[0] >= bound}
        require(n == len(self.model.pairs) - len(kept), "erase_if: wrong count", n)
        self.model.pairs = kept

    # ---- the whole table
    def resize(self) -> None:
        verb = self.example.choose(["reserve", "shrink", "clear", "flush"])
        self.example.note(verb)
        try:
            given = [self.example.between(0, 5000)] if verb == "reserve" else []
            self.call(lambda: getattr(self.table, verb)(*given))
        except UnsupportedVerb:
            return
        if verb == "clear":
            self.model.pairs.clear()

    def replace(self) -> None:
        """Go on with a copy."""
        how = self.example.choose(["copy", "pickle", "save"])
        self.example.note(how)
        try:
            if how == "copy":
                self.table = self.call(self.table.copy)
            elif how == "pickle":
                self.table = pickle.loads(pickle.dumps(self.table))
            else:
                with tempfile.TemporaryDirectory() as folder:
                    self.table.save(Path(folder) / "t")
                    self.table = type(self.table).load(Path(folder) / "t", device="cpu")
        except UnsupportedVerb:
            require(how == "save", f"{how} is refused")

    def algebra(self) -> None:
        """Combine a set with another one."""
        if self.value is not None:
            return
        plains = [self.example.choose(self.pool) for _ in range(self.example.between(1, 30))]
        other = HashSet(self.key.spec, device="cpu", **self.key.options)
        other.insert(self.key.array(plains))
        op = self.example.choose(["__or__", "__and__", "__sub__", "__xor__"])
        self.example.note(op)
        made = self.call(lambda: getattr(self.table, op)(other))
        expected = getattr(set(self.model.pairs), op)(set(plains))
        require(set(plain_of(as_numpy(made.keys(like="numpy")), self.rule)) == expected, f"{op}: wrong keys")

    def check(self, where: str = "table") -> None:
        """Compare the whole table with the model."""
        self.table.check()
        if self.value is None:
            plains = plain_of(self._numpy_keys(), self.rule)
            self.model.same([(key, b"") for key in plains], len(self.table), where)
            return
        keys, values = self.table.to_arrays(like="numpy")
        plains = plain_of(as_numpy(keys), self.rule)
        self.model.same(zip(plains, rows_of(values, self.value), strict=True), len(self.table), where)

    def _numpy_keys(self) -> Any:
        return as_numpy(self.table.keys(like="numpy"))


VERBS: list[Callable[[Subject], None]] = [
    *[Subject.insert] * 4,
    *[Subject.contains, Subject.find, Subject.assign, Subject.upsert, Subject.erase] * 2,
    *[Subject.find_in_any_order, Subject.one_key, Subject.find_or_insert, Subject.number, Subject.pop, Subject.update],
    *[Subject.execute, Subject.plan, Subject.erase_if, Subject.resize, Subject.replace, Subject.algebra],
]
