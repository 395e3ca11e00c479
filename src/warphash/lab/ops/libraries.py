"""The libraries that are compared: how each of them holds a table, and how its answers become NumPy arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ...settings import get_num_threads
from .base import Array, Table

__all__ = ["LIBRARIES", "Library", "installed"]


class Library(ABC):
    """A library that was imported, to hold tables and to read answers. Neither is timed.

    Parameters
    ----------
    device
        Of the tables.

    Attributes
    ----------
    lib
        What a call takes first: the module, or a connection of DuckDB.

    Raises
    ------
    ImportError
        If the library is not installed.
    """

    name: ClassVar[str]
    device_kind: ClassVar[str] = "cpu"

    def __init__(self, device: str) -> None:
        self.device = device
        self.lib: Any = import_module(self.name)

    @property
    def version(self) -> str:
        """Of the library."""
        return str(import_module(self.name).__version__)

    @abstractmethod
    def held(self, table: Table) -> Any:
        """A table as its users have it: a column of the library if it has one column, and else a frame."""

    def host(self, column: Any) -> Array:
        """A column of an answer as a NumPy array."""
        return np.asarray(column)

    def columns(self, answer: Any) -> list[Array]:
        """All columns of an answer: of a frame, of a tuple or list, or the answer itself."""
        return [self.host(column) for column in self._split(answer)]

    def _split(self, answer: Any) -> Iterable[Any]:
        return answer if isinstance(answer, tuple | list) else (answer,)

    def close(self) -> None:
        """Let go of the library, so that it frees what was held."""
        del self.lib


class _Numpy(Library):
    """Arrays. A frame is a tuple of them."""

    name = "numpy"

    def held(self, table: Table) -> Any:
        columns = tuple(map(self._column, table.values()))
        return columns if len(columns) > 1 else columns[0]

    def _column(self, array: Array) -> Any:
        return array.astype(str) if array.dtype == object else array


class _Cupy(_Numpy):
    name, device_kind = "cupy", "cuda"

    def _column(self, array: Array) -> Any:
        return self.lib.asarray(array)

    def host(self, column: Any) -> Array:
        return np.asarray(self.lib.asnumpy(column))


class _Torch(_Numpy):
    name, device_kind = "torch", "cuda"

    def _column(self, array: Array) -> Any:
        return self.lib.from_numpy(array).to(self.device)

    def host(self, column: Any) -> Array:
        return np.asarray(column.cpu().numpy())


class _Pandas(Library):
    name = "pandas"

    def held(self, table: Table) -> Any:
        frame = self.lib.DataFrame(dict(table))
        return frame if len(table) > 1 else frame["key"]

    def _split(self, answer: Any) -> Iterable[Any]:
        return (answer[name] for name in answer) if isinstance(answer, self.lib.DataFrame) else super()._split(answer)


class _Polars(Library):
    name = "polars"

    def held(self, table: Table) -> Any:
        frame = self.lib.DataFrame(dict(table))
        return frame if len(table) > 1 else frame["key"]

    def _split(self, answer: Any) -> Iterable[Any]:
        return answer.get_columns() if isinstance(answer, self.lib.DataFrame) else super()._split(answer)


class _Pyarrow(Library):
    name = "pyarrow"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        import_module("pyarrow.compute")
        self.lib.set_cpu_count(get_num_threads())

    def held(self, table: Table) -> Any:
        columns = {name: self.lib.array(column) for name, column in table.items()}
        return self.lib.table(columns) if len(columns) > 1 else columns["key"]

    def _split(self, answer: Any) -> Iterable[Any]:
        return answer.columns if isinstance(answer, self.lib.Table) else super()._split(answer)


class _Duckdb(Library):
    """Tables of a database in memory. A call is given their names."""

    name = "duckdb"

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.lib = self.lib.connect(config={"threads": get_num_threads()})
        self._names = iter(("first_table", "second_table"))

    def held(self, table: Table) -> Any:
        name = next(self._names)
        self.lib.register("given", dict(table))
        self.lib.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self.lib.unregister("given")
        return name

    def _split(self, answer: Any) -> Iterable[Any]:
        return answer.values() if isinstance(answer, dict) else super()._split(answer)

    def close(self) -> None:
        self.lib.close()
        super().close()


LIBRARIES: dict[str, type[Library]] = {
    kind.name: kind for kind in (_Numpy, _Pandas, _Polars, _Pyarrow, _Duckdb, _Torch, _Cupy)
}
"""All libraries by their names."""


def installed(device: str) -> tuple[dict[str, str], list[str]]:
    """The libraries for a device that are installed, with their versions, and the names of those that are not."""
    versions, missing = {}, []
    for name, kind in LIBRARIES.items():
        if kind.device_kind != device.partition(":")[0]:
            continue
        try:
            library = kind(device)
        except ImportError:
            missing.append(name)
        else:
            versions[name] = library.version
            library.close()
    return versions, missing
