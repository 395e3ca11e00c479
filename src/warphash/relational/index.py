"""`Index`: keys with their positions, to be looked up many times."""

from __future__ import annotations

import os
from typing import Any, Self, TypeVar

import numpy as np

from ..errors import CorruptFile, DeviceError, DtypeError, ParameterError
from . import index_file
from .composites import check_alike, row_elements_of
from .elements import Elements, KeptElements
from .known import known_of
from .numbered import INT64, Asked, Indices, index_type, narrowest_index_type

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
        As ``x`` of `unique`. Keys may repeat. The rows of at most 16 columns are keys, too.

    Raises
    ------
    DtypeError, DeviceError, ShapeError, MemoryError
        As `unique`; and `DtypeError` for keys of more than 128 bytes, and for rows of more than 16 columns.

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
        given = row_elements_of(keys)
        self._build(row_elements_of(given.taken(given.ranks(len(given)))))

    def _build(self, keys: KeptElements) -> None:
        """Number some keys, and make what they are looked up in."""
        self._elements = keys
        # In host memory, a table with codes of 4 bytes is smaller and faster.
        dtype = narrowest_index_type(len(keys)) if keys.xp is np else INT64
        numbers = keys.number(Asked(codes=True, counts=True, dtype=dtype))
        firsts = numbers.firsts
        self.is_unique = len(firsts) == len(keys)
        """Whether no key repeats."""
        if not self.is_unique:  # positions, those of one key together
            self._positions: Any = keys.in_type(keys.argsort(numbers.code_of_each), dtype)
            self._offsets: Any = keys.xp.concatenate((keys.ranks(1), numbers.count_of_each.cumsum(0)))
        self._known = known_of(keys, firsts, dtype=dtype)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the keys to a file, which replaces an older one only when it is complete and on disk.

        The mode and the owner of the older file stay. If ``path`` is a link, the file that it leads to is replaced.

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
        """The keys, in their order: a copy, in the library that they were given in. O(n)."""
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
        """
        if not self.is_unique:
            raise ParameterError(
                f"get_indexer takes an index whose keys differ, and of {len(self):,} keys some repeat: "
                "call get_indexer_non_unique"
            )
        elements, dtype = self._sought(q), index_type(index_dtype, len(self))
        return elements.for_each(elements.in_type(self._known.codes_of(elements), dtype))

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
        """
        elements, dtype = self._sought(q), index_type(index_dtype, len(self))
        codes = self._known.codes_of(elements)
        if elements.xp is not self._elements.xp:
            names = " and ".join(each.xp.__name__ for each in (self._elements, elements))
            raise DeviceError(
                f"expected keys of one library, got some of {names}: convert them, as by torch.from_dlpack(q)"
            )
        missing = elements.ranks(len(codes))[codes < 0]
        positions = elements.in_type(self._positions_of(codes, elements), dtype)
        return elements.apart(positions), elements.apart(missing)

    def _sought(self, q: Any) -> Elements:
        """Some keys, in the form of those of the index."""
        elements = row_elements_of(q)
        check_alike(elements, self._elements)
        return elements

    def _positions_of(self, codes: Indices, elements: Elements) -> Any:
        """All positions of the codes of some elements, one code after the other."""
        if self.is_unique:
            return codes
        is_missing, xp = codes < 0, elements.xp
        begins = self._offsets[codes]
        counts = xp.where(is_missing, 1, self._offsets[codes + 1] - begins)
        owners = elements.owners(counts)
        within = (begins + counts - counts.cumsum(0))[owners] + elements.ranks(len(owners))
        absent = is_missing[owners]
        return xp.where(absent, -1, self._positions[xp.where(absent, 0, within)])

    def contains(self, q: Any) -> Any:
        """Find which of some keys are there: bool, in the library and the shape of ``q``.

        ``q``, exceptions and cost are as of `get_indexer`, but for keys that repeat.
        """
        elements = self._sought(q)
        return elements.for_each(self._known.contains(elements))


def _of_stored(cls: type[_Made], keys: index_file.StoredKeys) -> _Made:
    """An index of keys that were read of a file or of a pickle."""
    index = cls.__new__(cls)
    index._build(keys)
    return index
