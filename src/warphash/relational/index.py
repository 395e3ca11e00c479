"""`Index`: keys with their positions, to be looked up many times."""

from __future__ import annotations

import os
from typing import Any, Protocol, Self

import numpy as np

from ..errors import CorruptFile, DtypeError, ParameterError
from . import index_file
from .elements import elements_of
from .items import Items
from .known import KnownItems
from .numbered import Indices, Int64s, index_type, narrowest_index_type, number_items, stable_order

__all__ = ["Index"]


class _Keys(Protocol):
    """The keys of an index: elements of a caller's, or keys of a file."""

    def __len__(self) -> int: ...

    @property
    def items(self) -> Items:
        """What is compared."""

    def taken(self, positions: Int64s) -> Any:
        """The keys at some positions."""


class Index:
    """Positions of keys, as of an Index of pandas.

    Nulls equal each other, and so do NaN, and NaT. Keys of another type are compared by their values. The keys are
    copied, so an array that changes later changes nothing here. Several threads may look keys up at one time.
    An index can be saved to a file and pickled; `copy.copy` and `copy.deepcopy` return the index itself, which never
    changes.

    Parameters
    ----------
    keys
        As ``x`` of `unique`. Keys may repeat.

    Raises
    ------
    DeviceError
        For an array on a GPU.
    DtypeError, ShapeError, MemoryError
        As `unique`; and for keys of more than 128 bytes.

    Notes
    -----
    O(n) for n keys.

    Examples
    --------
    >>> import numpy as np, warphash
    >>> index = warphash.Index(np.array([30, 10, 20]))
    >>> index.get_indexer([20, 99, 30])
    array([ 2, -1,  0])
    """

    def __init__(self, keys: Any) -> None:
        given = elements_of(keys)
        self._build(elements_of(given.taken(np.arange(len(given)))))

    def _build(self, keys: _Keys) -> None:
        """Number some keys, and make what they are looked up in."""
        self._elements = keys
        items = keys.items
        dtype = narrowest_index_type(len(keys))  # a table with codes of 4 bytes is smaller and faster
        numbers = number_items(items, codes=True, counts=True, dtype=dtype)
        firsts = numbers.firsts
        self.is_unique = len(firsts) == len(keys)
        """Whether no key repeats."""
        if not self.is_unique:  # positions, those of one key together
            self._positions: Indices = stable_order(numbers.code_of_each).astype(dtype, copy=False)
            self._offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(numbers.count_of_each, dtype=np.int64)))
            valid = None if items.valid is None else items.valid[firsts]
            items = items._replace(array=items.array[firsts], valid=valid)
        self._known = KnownItems(items, np.arange(len(firsts), dtype=dtype))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the keys to a file, which replaces an older one only when it is complete and on disk.

        The mode and the owner of the older file stay. If ``path`` is a link, the file that it leads to is replaced.

        Raises
        ------
        PathError
            If ``path`` is a folder or a device, or its folder is missing or takes no file.
        DtypeError
            If no file can name the type of the keys.
        DeviceError
            For keys on a GPU.
        MemoryError
            If there is no room.

        Notes
        -----
        O(n) for n keys. The file holds the keys alone: see `load`.
        """
        index_file.write(path, lambda: self._elements.items)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an index that `save` wrote.

        All answers are those of the saved index. The library of the keys is not in the file: `keys` returns an array
        of NumPy of the type of the keys. That is an array of objects for strings or bytes of any length, for decimal
        numbers, for rows, and for keys of which some are nulls, which are None. Categories, names, labels and time
        zones of columns are not in the file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        CorruptFile
            If the file is truncated, altered, or no saved index of this version.
        MemoryError
            If there is no room.

        Notes
        -----
        O(n) for n keys, which are numbered again. Reading runs no code of the file.

        Examples
        --------
        >>> import pathlib, tempfile, warphash
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "words")
        ...     warphash.Index(["to", "be", None]).save(path)
        ...     index = warphash.Index.load(path)
        >>> index.get_indexer(["be", None, "or"])
        array([ 1,  2, -1])
        """
        index = cls.__new__(cls)
        try:
            index._build(index_file.read(path))
        except DtypeError as error:
            raise CorruptFile(f"{os.fspath(path)} holds no Index: {error}") from None
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.keys(),)

    def __copy__(self) -> Self:
        return self  # nothing changes an index

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"<warphash.Index of {len(self):,} keys{'' if self.is_unique else ', some of which repeat'}>"

    def keys(self) -> Any:
        """The keys, in their order: a copy, in the library that they were given in. O(n)."""
        return self._elements.taken(np.arange(len(self)))

    def get_indexer(self, q: Any, *, index_dtype: Any = None) -> Any:
        """Find the position of each of some keys.

        Parameters
        ----------
        q
            As ``x`` of `unique`.
        index_dtype
            Of positions: ``"int64"``, the default, or ``"int32"``, which takes half the memory.

        Returns
        -------
        positions
            Of type ``index_dtype``, in the library and the shape of ``q``; -1 for a key that is not there.

        Raises
        ------
        ParameterError
            If keys of the index repeat; or for int32, if it has more than 2^31 - 1 keys.
        DtypeError, DeviceError, ShapeError, MemoryError
            As of the class.

        Notes
        -----
        O(n) for n keys of ``q``.
        """
        if not self.is_unique:
            raise ParameterError(
                f"get_indexer takes an index whose keys differ, and of {len(self):,} keys some repeat: "
                "call get_indexer_non_unique"
            )
        elements, dtype = elements_of(q), index_type(index_dtype, len(self))
        return elements.for_each(self._known.codes_of(elements.items).astype(dtype, copy=False))

    def get_indexer_non_unique(self, q: Any, *, index_dtype: Any = None) -> tuple[Any, Any]:
        """Find all positions of each of some keys.

        Parameters
        ----------
        q
            As ``x`` of `unique`.
        index_dtype
            Of positions: as of `get_indexer`.

        Returns
        -------
        positions, missing
            Of types ``index_dtype`` and int64, in the library of ``q``. ``positions`` has those of the first key in
            ascending order, then those of the next, and -1 for a key that is not there. ``missing`` says which keys of
            ``q`` are not there.

        Raises
        ------
        ParameterError
            For int32, if the index has more than 2^31 - 1 keys.
        DtypeError, DeviceError, ShapeError, MemoryError
            As of the class.

        Notes
        -----
        O(n + p) for n keys of ``q`` and p positions.
        """
        elements, dtype = elements_of(q), index_type(index_dtype, len(self))
        codes = self._known.codes_of(elements.items)
        missing = np.flatnonzero(codes < 0)
        return elements.apart(self._positions_of(codes).astype(dtype, copy=False)), elements.apart(missing)

    def _positions_of(self, codes: Indices) -> Indices:
        """All positions of some codes, one code after the other."""
        if self.is_unique:
            return codes
        is_missing = codes < 0
        counts = np.where(is_missing, 1, np.diff(self._offsets)[codes])
        begins = np.where(is_missing, 0, self._offsets[codes])
        behind = np.cumsum(counts)
        within = np.arange(behind[-1] if len(behind) else 0) - np.repeat(behind - counts, counts)
        positions: Indices = self._positions[np.repeat(begins, counts) + within]
        positions[np.repeat(is_missing, counts)] = -1
        return positions

    def contains(self, q: Any) -> Any:
        """Find which of some keys are there: bool, in the library and the shape of ``q``.

        ``q``, exceptions and cost are as of `get_indexer`, but for keys that repeat.
        """
        elements = elements_of(q)
        return elements.for_each(self._known.contains(elements.items))
