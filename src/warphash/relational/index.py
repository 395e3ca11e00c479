"""`Index`: keys with their positions, to be looked up many times."""

from __future__ import annotations

import os
from typing import Any, Self, TypeVar

from ..errors import CorruptFile, DtypeError, ParameterError
from . import index_file
from .composites import alike, check_axes, key_elements_of, row_elements_of
from .elements import Elements, KeptElements
from .matches import How, JoinIndices, KeyRows, Order, checked_how, exported
from .numbered import index_type

__all__ = ["Index"]

_Made = TypeVar("_Made", bound="Index")


class Index:
    """Positions of keys, as of an Index of pandas.

    Nulls equal each other, and so do NaN, and NaT. Keys of another type are compared by their values. The keys are
    copied, so an array that changes later changes nothing here. Several threads may look keys up at one time. Keys on a
    GPU stay there, in a table of that GPU, and are looked up there: ``q`` of the verbs is then an array on that GPU.
    An index can be saved to a file and pickled; `copy.copy` and `copy.deepcopy` return the index itself, which never
    changes.

    Parameters
    ----------
    keys
        As ``x`` of `unique`, with one axis. Keys may repeat. The rows of at most 16 columns are keys, too. If they are
        those of a frame, frames are looked up by the names of their columns.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`; `ShapeError` for an array of several axes; and `DtypeError` for keys of more than 128 bytes, and
        for rows of more than 16 columns.

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
        given = key_elements_of(keys)
        self._build(row_elements_of(given.taken(given.ranks(len(given)))))

    def _build(self, keys: KeptElements) -> None:
        """Number some keys, and make what they are looked up in."""
        self._elements, self._rows = keys, KeyRows(keys)

    @property
    def is_unique(self) -> bool:
        """Whether no key repeats."""
        return self._rows.is_unique

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the keys to a file, which replaces an older one only when it is complete and on disk.

        The mode and the owner of the older file stay. If ``path`` is a link, the file that it leads to is replaced.

        Parameters
        ----------
        path
            Of the file.

        Raises
        ------
        PathError
            If ``path`` is a folder or a device, or its folder is missing or takes no file.
        DtypeError
            If no file can name the type of the keys.
        DeviceError, ShapeError
            For keys on a GPU, and for rows of columns.
        MemoryError
            If there is no room.

        Notes
        -----
        O(n) for n keys. The file holds the keys alone: see `load`.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np, warphash
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "index")
        ...     warphash.Index(np.array([30, 10])).save(path)
        ...     warphash.Index.load(path).keys()
        array([30, 10])
        """
        index_file.write(path, lambda: self._elements.items)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an index that `save` wrote.

        All answers are those of the saved index. The library of the keys is not in the file: `keys` returns an array
        of NumPy of the type of the keys. That is an array of objects for strings or bytes of any length, for decimal
        numbers, for rows, and for keys of which some are nulls, which are None. Categories, names, labels and time
        zones of columns are not in the file.

        Parameters
        ----------
        path
            Of the file.

        Returns
        -------
        Index
            An index of this class.

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
        try:
            return _of_stored(cls, index_file.read(path))
        except DtypeError as error:
            raise CorruptFile(f"{os.fspath(path)} holds no Index: {error}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._elements, index_file.StoredKeys):  # whose `keys` may be of a type that is no key: Decimal
            return _of_stored, (type(self), self._elements)
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
        """The keys, in their order: a copy, in the library that they were given in.

        Returns
        -------
        keys[len(index)]
            As they were given; of an index that was read from a file, see `load`.

        Notes
        -----
        O(n).

        Examples
        --------
        >>> import numpy as np, warphash
        >>> index = warphash.Index(np.array([30, 10, 30]))
        >>> index.keys()
        array([30, 10, 30])
        """
        return self._elements.taken(self._elements.ranks(len(self)))

    def get_indexer(self, q: Any, *, index_dtype: Any = None) -> Any:
        """Find the position of each of some keys.

        Parameters
        ----------
        q
            As ``x`` of `unique`; if keys are rows, as many columns.
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
        DeviceError
            If the keys of the index are on another device.
        DtypeError, ShapeError, MemoryError
            As of the class.

        Notes
        -----
        O(n) for n keys of ``q``.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> warphash.Index(np.array([30, 10, 20])).get_indexer([20, 99])
        array([ 2, -1])
        """
        if not self.is_unique:
            raise ParameterError(
                f"get_indexer takes an index whose keys differ, and of {len(self):,} keys some repeat: "
                "call get_indexer_non_unique"
            )
        elements, dtype = self._sought(q), index_type(index_dtype, len(self))
        return elements.for_each(elements.in_type(self._rows.codes_of(elements), dtype))

    def get_indexer_non_unique(self, q: Any, *, index_dtype: Any = None) -> tuple[Any, Any]:
        """Find all positions of each of some keys.

        Parameters
        ----------
        q
            As ``x`` of `unique`; if keys are rows, as many columns.
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
        DeviceError
            If the keys of the index are on another device, or in another library on the same GPU.
        DtypeError, ShapeError, MemoryError
            As of the class.

        Notes
        -----
        O(n + p) for n keys of ``q`` and p positions.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> index = warphash.Index(np.array([30, 10, 30]))
        >>> index.get_indexer_non_unique([30, 99])
        (array([ 0,  2, -1]), array([1]))
        """
        elements, dtype = self._sought(q), index_type(index_dtype, len(self))
        codes = self._rows.codes_of(elements)
        positions = self._rows.partners(elements, codes, dtype, keeps_all=True).right
        return elements.apart(positions), elements.apart(elements.places_of(codes < 0))

    def join(self, q: Any, how: How = "inner", *, order: Order = "left", index_dtype: Any = None) -> JoinIndices:
        """Find the pairs of some keys, as the left side of a join, and of keys of the index that are equal to them.

        Parameters
        ----------
        q
            As ``x`` of `unique`; if keys are rows, as many columns.
        how, order, index_dtype
            As of `warphash.join`.

        Returns
        -------
        left, right
            As of `warphash.join`: rows of ``q``, and positions in the index. Nulls equal each other, and so do NaN.

        Raises
        ------
        ParameterError
            If there is no such ``how``, ``order`` or ``index_dtype``; or for int32, if ``q`` or the index has more than
            2^31 - 1 keys.
        DeviceError
            If the keys of the index are on another device, or in another library on the same GPU.
        DtypeError, ShapeError, MemoryError
            As of the class; `MemoryError` also if there is no room for the pairs.

        Notes
        -----
        O(n + p) for n keys of ``q`` and p pairs. ``"right"`` and ``"outer"`` look at all m keys, too: O(n + m + p).

        Examples
        --------
        >>> import numpy as np, warphash
        >>> orders = warphash.Index(np.array([30, 10, 30]))
        >>> orders.join(np.array([10, 20, 30]), "left")
        JoinIndices(left=array([0, 1, 2, 2]), right=array([ 1, -1,  0,  2]))
        """
        checked_how(how, order)
        elements = self._sought(q)
        check_axes(elements)
        dtype = index_type(index_dtype, max(len(elements), len(self)))
        return exported(elements, self._rows.joined(elements, how, order, dtype))

    def _sought(self, q: Any) -> Elements:
        """Some keys, in the form of those of the index."""
        return alike(row_elements_of(q), self._elements)

    def contains(self, q: Any) -> Any:
        """Find which of some keys are there.

        Parameters
        ----------
        q
            As of `get_indexer`.

        Returns
        -------
        bool
            In the library and the shape of ``q``.

        Raises
        ------
        DeviceError, DtypeError, ShapeError, MemoryError
            As `get_indexer`.

        Notes
        -----
        O(n) for n keys of ``q``.

        Examples
        --------
        >>> import numpy as np, warphash
        >>> index = warphash.Index(np.array([30, 10, 30]))
        >>> index.contains([10, 20])
        array([ True, False])
        """
        elements = self._sought(q)
        return elements.for_each(self._rows.contains(elements))


def _of_stored(cls: type[_Made], keys: index_file.StoredKeys) -> _Made:
    """An index of keys that were read of a file or of a pickle."""
    index = cls.__new__(cls)
    index._build(keys)
    return index
