"""Elements of a GPU that are kept there to look others up: the words by which they are numbered."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..storage.groups.device_places import DevicePlaces
from ..table.maps import HashMap, HashSet
from .device_elements import DeviceElements, on_device
from .items import Missing
from .numbered import INT64
from .word_lookups import SomeCodes

__all__ = ["DeviceKnown", "device_known_if_unique"]


class DeviceKnown:
    """Elements to be found; `known.KnownItems` for a GPU, where there are no nulls.

    Parameters
    ----------
    elements
        The elements.
    dtype
        Of codes: that of an element is its position. None: nobody will ask for codes, and elements may repeat.
    nan
        ``"one"``: NaN is found if it is there; ``"dropped"``: it is not.
    places
        Where the words of the elements are, if that was made before.

    Raises
    ------
    MemoryError
        If there is no room.
    """

    def __init__(
        self,
        elements: DeviceElements,
        dtype: np.dtype[Any] | None = None,
        *,
        nan: Missing = "one",
        places: DevicePlaces | None = None,
    ) -> None:
        self._dtype, self._device = elements.dtype, elements.device
        self._code_type = INT64 if dtype is None else dtype
        self._drops_nan = nan == "dropped" and elements.dtype.kind == "f"
        self._places = places
        if places is None and dtype is not None:
            self._places = elements.word_places(if_unique=False)
        if self._places is None:
            self._table = self._table_of(elements, dtype is not None)
            elements.wait()

    def _table_of(self, elements: DeviceElements, has_codes: bool) -> Any:
        if not has_codes:
            return HashSet.from_arrays(elements.words(), device=self._device)
        codes = elements.ranks(len(elements))
        return HashMap.from_arrays(elements.words(), codes, assume_unique=True, device=self._device)

    def codes_of(self, elements: object) -> Any:
        """As `Known.codes_of`."""
        sought, lacking = self._sought(elements)
        if self._places is not None:
            codes = sought.places_in(self._places, self._code_type)
        else:
            codes = sought.in_type(self._table.find(sought.words(), -1)[0], self._code_type)
        if lacking is not None:
            codes[lacking] = -1
        return codes

    def some_codes_of(self, elements: object) -> SomeCodes:
        """As `Known.some_codes_of`: of all elements, of which each reads one line of the cells."""
        return SomeCodes(None, self.codes_of(elements))

    def contains(self, elements: object) -> Any:
        """As `Known.contains`."""
        if self._places is not None:
            return self.codes_of(elements) >= 0
        sought, lacking = self._sought(elements)
        flags = self._table.contains(sought.words())
        return flags if lacking is None else flags & ~lacking

    def _sought(self, elements: object) -> tuple[DeviceElements, Any]:
        """Elements in the type of the known ones, and which of them are not there in any case (None: nobody knows)."""
        made, fits = on_device(elements, self._device).as_type(self._dtype)
        lacking = None if fits is None else ~fits
        if self._drops_nan:
            is_nan = made.is_nan(made.ranks(len(made)))
            lacking = is_nan if lacking is None else lacking | is_nan
        return made, lacking


def device_known_if_unique(elements: DeviceElements, dtype: np.dtype[Any], nan: Missing) -> DeviceKnown | None:
    """As `known.known_if_unique`, of words; None for other elements."""
    places = elements.word_places(if_unique=True)
    return None if places is None else DeviceKnown(elements, dtype, nan=nan, places=places)
