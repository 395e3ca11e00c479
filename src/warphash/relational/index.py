"""`Index`: keys with their positions, to be looked up many times."""

from __future__ import annotations

from typing import Any

from ..errors import DeviceError, ParameterError
from .composites import check_alike, row_elements_of
from .elements import Elements
from .known import known_of
from .numbered import Int64s

__all__ = ["Index"]


class Index:
    """Positions of keys, as of an Index of pandas.

    Nulls equal each other, and so do NaN, and NaT. Keys of another type are compared by their values. The keys are
    copied, so an array that changes later changes nothing here. Several threads may look keys up at one time. Keys on a
    GPU stay there, in a table of that GPU, and are looked up there: ``q`` of the verbs is then an array on that GPU.

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
        self._elements = elements = row_elements_of(given.taken(given.ranks(len(given))))
        numbers = elements.number(codes=True, counts=True)
        firsts = numbers.firsts
        self.is_unique = len(firsts) == len(elements)
        """Whether no key repeats."""
        if not self.is_unique:  # positions, those of one key together
            self._positions = elements.argsort(numbers.code_of_each)
            self._offsets = elements.xp.concatenate((elements.ranks(1), numbers.count_of_each.cumsum(0)))
        self._known = known_of(elements, firsts)

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"<warphash.Index of {len(self):,} keys{'' if self.is_unique else ', some of which repeat'}>"

    def keys(self) -> Any:
        """The keys, in their order: a copy, in the library that they were given in. O(n)."""
        return self._elements.taken(self._elements.ranks(len(self)))

    def get_indexer(self, q: Any) -> Any:
        """Find the position of each of some keys.

        Parameters
        ----------
        q
            As ``x`` of `unique`; if keys are rows, as many columns.

        Returns
        -------
        positions
            int64, in the library and the shape of ``q``; -1 for a key that is not there.

        Raises
        ------
        ParameterError
            If keys of the index repeat.
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
        elements = self._sought(q)
        return elements.for_each(self._known.codes_of(elements))

    def get_indexer_non_unique(self, q: Any) -> tuple[Any, Any]:
        """Find all positions of each of some keys.

        Parameters
        ----------
        q
            As ``x`` of `unique`; if keys are rows, as many columns.

        Returns
        -------
        positions, missing
            int64, in the library of ``q``. ``positions`` has those of the first key in ascending order, then those of
            the next, and -1 for a key that is not there. ``missing`` says which keys of ``q`` are not there.

        Raises
        ------
        DeviceError
            If the keys of the index are on another device, or in another library on the same GPU.
        DtypeError, ShapeError, MemoryError
            As of the class.

        Notes
        -----
        O(n + p) for n keys of ``q`` and p positions.
        """
        elements = self._sought(q)
        codes = self._known.codes_of(elements)
        if elements.xp is not self._elements.xp:
            names = " and ".join(each.xp.__name__ for each in (self._elements, elements))
            raise DeviceError(
                f"expected keys of one library, got some of {names}: convert them, as by torch.from_dlpack(q)"
            )
        missing = elements.ranks(len(codes))[codes < 0]
        return elements.apart(self._positions_of(codes, elements)), elements.apart(missing)

    def _sought(self, q: Any) -> Elements:
        """Some keys, in the form of those of the index."""
        elements = row_elements_of(q)
        check_alike(elements, self._elements)
        return elements

    def _positions_of(self, codes: Int64s, elements: Elements) -> Any:
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

        Parameters, exceptions and cost are those of `get_indexer`, but for keys that repeat.
        """
        elements = self._sought(q)
        return elements.for_each(self._known.contains(elements))
