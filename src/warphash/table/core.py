"""A table without verbs: its columns, design, engine and backing; its figures; and how another like it is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from ..arrays.row_type import Column
from ..arrays.transfer import Transfer
from ..designs import registry
from ..errors import UnsupportedVerb
from ..runtime.abi import kind_of
from ..runtime.devices import engine_for
from ..storage.backing import Backing, make_backing
from .locks import ReadWriteLock
from .options import bounds_of, check_options, chosen, integer, load_factor_of
from .stats import Stats

__all__ = ["TableCore"]


class TableCore:
    """What a table is, whatever its verbs. See `HashMap` for the parameters.

    A table's own attributes are slots. So what is in its ``__dict__`` belongs to the caller, or to a subclass of the
    caller's, and goes along when the table is copied or pickled (`__getstate__`).
    """

    __slots__ = (
        "_backing",
        "_bounds",
        "_design",
        "_device",
        "_engine",
        "_key",
        "_load_factor",
        "_lock",
        "_options",
        "_parameters",
        "_seed",
        "_staging",
        "_transfer",
        "_value",
        "_value_kind",
    )

    _kind: ClassVar[str]
    _multi: ClassVar[bool] = False

    def __init__(
        self,
        key: npt.DTypeLike,
        value: npt.DTypeLike | None,
        *,
        capacity: int = 1024,
        design: str = "auto",
        device: str | None = None,
        load_factor: float | None = None,
        load_bounds: tuple[float, float] | None = None,
        seed: int | None = None,
        hash: str = "mixer",
        on_full: str = "grow",
        attempts: int = 8,
        count_probes: bool = False,
        **parameters: Any,
    ) -> None:
        self._key = Column.of_keys(key)
        self._value = None if value is None else Column.of_values(value)
        self._value_kind = kind_of(self._value.dtype) if self._value else 0
        self._design, self._parameters = chosen(design, parameters)
        self._check_design()
        self._load_factor = load_factor_of(load_factor, self._design, self._parameters)
        check_options(capacity, hash, on_full, attempts)
        self._bounds = bounds_of(load_bounds, on_full, self._design, self._parameters)
        self._seed = int.from_bytes(os.urandom(8)) >> 1 if seed is None else integer("seed", seed, 0)
        self._engine: Any = engine_for(device)
        self._device: str = self._engine.device
        self._staging: Any = getattr(self._engine, "staging", None)
        self._transfer = Transfer(self._engine)
        self._lock = ReadWriteLock()
        self._backing: Backing = make_backing(
            self._engine,
            self._design,
            self._parameters,
            key_bytes=self._key.nbytes,
            value_bytes=self._value.nbytes if self._value else 0,
            capacity=int(capacity),
            seed=self._seed,
            family=hash,
            grows=on_full == "grow",
            attempts=int(attempts),
            load_factor=self._load_factor,
            bounds=self._bounds,
            counts_probes=bool(count_probes),
            multi=self._multi,
        )
        self._options = {
            "hash": hash,
            "on_full": on_full,
            "attempts": int(attempts),
            "count_probes": bool(count_probes),
        }

    # ---- what it is
    @property
    def design(self) -> str:
        """Name of the design."""
        return self._design.name

    @property
    def device(self) -> str:
        """Where the table lives: ``"cpu"``, ``"cuda:0"``."""
        return self._device

    @property
    def key_dtype(self) -> np.dtype[Any]:
        """Type of a key; of a row of keys, with its shape."""
        return self._key.numpy

    @property
    def seed(self) -> int:
        """Seed of the hash constants; tables of one seed and history are alike."""
        return self._seed

    @property
    def capacity(self) -> int:
        """Keys that the present memory holds at the load factor that the table was made for."""
        with self._looking():
            return int(self._backing.elastic.capacity)

    @property
    def load_factor(self) -> float:
        """Keys held over slots."""
        with self._looking():
            elastic = self._backing.elastic
            return float(elastic.size / elastic.store.slots)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the table holds."""
        with self._looking():
            return self._backing.nbytes

    def __len__(self) -> int:
        with self._looking():
            return int(self._backing.elastic.size)

    def __repr__(self) -> str:
        with self._looking():
            return self._repr_locked()

    def stats(self) -> Stats:
        """Figures of the table, without reading it."""
        with self._looking():
            return self._stats_locked()

    # ---- the lock, which is not reentrant: the caller of a method ``_*_locked`` holds it
    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Hold the lock to read the state of the table: beside other readers, or alone if a batch is under way.

        Whoever reads the state ends that batch first, which writes. A lookup of keys mostly does not (`_reading`).
        """
        with self._lock.reading:
            if not self._backing.elastic.under_way:
                yield
                return
        with self._lock.writing:
            self._backing.finish(None)
            yield

    def _reading(self, look_up: Callable[[], Any]) -> Any:
        """What a lookup of keys answers while the lock is held: beside other readers, if it has no batch to end."""
        with self._lock.reading:
            if not self._backing.elastic.lookups_end_first:
                return look_up()
        with self._lock.writing:
            self._backing.finish(None)
            return look_up()

    def _repr_locked(self) -> str:
        value = "" if self._value is None else f", value={self._value.numpy}"
        elastic = self._backing.elastic
        return (
            f"<{type(self).__name__} key={self.key_dtype}{value}: {elastic.size:,} keys in "
            f"{elastic.store.slots:,} slots, {self.design} on {self.device}>"
        )

    def _stats_locked(self) -> Stats:
        elastic, nbytes = self._backing.elastic, self._backing.nbytes
        size, store, use = elastic.size, elastic.store, self._backing.memory_use()
        pair = self._key.nbytes + (self._value.nbytes if self._value else 0)
        return Stats(
            size=size,
            slots=store.slots,
            load_factor=size / store.slots,
            nbytes=nbytes,
            bytes_per_pair=nbytes / size if size else float("inf"),
            memory_utilisation=size * pair / use.in_use,
            reserve_nbytes=use.reserve,
            design=self.design,
            parameters=dict(self._parameters),
            rebuilds=elastic.rebuilds,
            resizes=getattr(elastic, "resizes", None),
            peak_nbytes=getattr(store, "peak_nbytes", None),
            nodes=use.nodes,
            insert_probes=elastic.probes / elastic.inserted if elastic.counts_probes and elastic.inserted else None,
        )

    # ---- making
    def _check_design(self) -> None:
        """Raise `ParameterError` if this kind of table cannot be of the design."""

    def _description(self) -> dict[str, Any]:
        """The options of the table. The caller holds the lock."""
        return {
            "kind": self._kind,
            "capacity": self._backing.elastic.capacity,
            "design": self.design,
            "parameters": self._parameters,
            "load_factor": self._load_factor,
            "load_bounds": self._bounds,
            "seed": self._seed,
            **self._options,
        }

    @classmethod
    def _made(cls, description: dict[str, Any], device: str | None, capacity: int) -> Self:
        options = {name: description[name] for name in ("load_factor", "seed", "hash", "on_full", "attempts")}
        table = cls.__new__(cls)
        TableCore.__init__(
            table,
            description["key"],
            description["value"],
            capacity=capacity,
            design=description["design"],
            device=device,
            count_probes=description["count_probes"],
            load_bounds=description.get("load_bounds"),  # which older files do not have
            **options,
            **description["parameters"],
        )
        return table

    def _typed_description(self) -> dict[str, Any]:
        """All that `_made` needs of a description. The caller holds the lock."""
        value = self._value.numpy if self._value else None
        return {**self._description(), "key": self.key_dtype, "value": value}

    def __getstate__(self) -> Any:
        """What the caller keeps in attributes, as `object` gives state: None, a dict, or a dict and one of slots."""
        state: Any = super().__getstate__()
        attributes, slots = state if isinstance(state, tuple) else (state, {})
        own = {name: value for name, value in slots.items() if name not in TableCore.__slots__}
        return (attributes, own) if own else attributes

    def __setstate__(self, state: Any) -> None:
        attributes, slots = state if isinstance(state, tuple) else (state, {})
        vars(self).update(attributes or {})
        for name, value in slots.items():
            setattr(self, name, value)

    def _need(self, verb: str) -> None:
        if verb not in self._design.capabilities:
            have = ", ".join(name for name in registry.names() if verb in registry.get(name).capabilities)
            raise UnsupportedVerb(f"design {self.design!r} has no {verb}; these have: {have}")
