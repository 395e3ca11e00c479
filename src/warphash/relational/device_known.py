"""Elements of a GPU that are kept there to look others up: a table of the words by which they are numbered."""

from __future__ import annotations

from typing import Any

from ..table.maps import HashMap, HashSet
from .device_elements import DeviceElements, on_device
from .items import Missing

__all__ = ["DeviceKnown"]


class DeviceKnown:
    """Elements to be found, each with its code; `known.KnownItems` for a GPU, where there are no nulls.

    Parameters
    ----------
    elements
        The elements.
    codes
        int64[n], an array on that GPU; None: nobody will ask for codes, and elements may repeat.
    nan
        ``"one"``: NaN is found if it is there; ``"dropped"``: it is not.

    Raises
    ------
    MemoryError
        If there is no room.
    """

    def __init__(self, elements: DeviceElements, codes: Any = None, *, nan: Missing = "one") -> None:
        self._dtype, self._device = elements.dtype, elements.device
        if nan == "dropped" and elements.dtype.kind == "f":
            kept = ~elements.is_nan(elements.ranks(len(elements)))
            elements = elements.like(elements.array[kept])
            codes = None if codes is None else codes[kept]
        words = elements.words()
        self._table: Any
        if codes is None:
            self._table = HashSet.from_arrays(words, device=self._device)
        else:
            self._table = HashMap.from_arrays(words, codes, assume_unique=True, device=self._device)
        elements.wait()

    def codes_of(self, elements: object) -> Any:
        """As `Known.codes_of`."""
        words, fits = self._words_of(elements)
        codes = self._table.find(words, -1)[0]
        if fits is not None:
            codes[~fits] = -1
        return codes

    def contains(self, elements: object) -> Any:
        """As `Known.contains`."""
        words, fits = self._words_of(elements)
        flags = self._table.contains(words)
        return flags if fits is None else flags & fits

    def _words_of(self, elements: object) -> tuple[Any, Any]:
        """The words of elements in the type of the known ones, and which elements that type has (None: all)."""
        made, fits = on_device(elements, self._device).as_type(self._dtype)
        return made.words(), fits
