"""How many bytes a call may use."""

from __future__ import annotations

import operator
import re
from decimal import Decimal
from typing import SupportsIndex

from ..errors import ParameterError

__all__ = ["bytes_of"]

_UNITS = {unit: 1000**power for power, unit in enumerate(("", "K", "M", "G", "T"))}
_BINARY_UNITS = {f"{unit}I": 1024**power for power, unit in enumerate(("", "K", "M", "G", "T")) if unit}
_TEXT = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", re.IGNORECASE)


def bytes_of(memory: int | str) -> int:
    """A number of bytes: an integer, or a text such as ``"2GB"``, ``"512MiB"`` or ``"1.5G"``.

    Raises
    ------
    ParameterError
        For another text, and for less than one byte.
    """
    if isinstance(memory, SupportsIndex) and not isinstance(memory, bool):
        nbytes = operator.index(memory)
    else:
        found = _TEXT.fullmatch(memory.strip()) if isinstance(memory, str) else None
        factor = (_UNITS | _BINARY_UNITS).get(found[2].upper()) if found else None
        nbytes = int(Decimal(found[1]) * factor) if found and factor else 0
    if nbytes < 1:
        raise ParameterError(f"expected bytes of memory, such as '2GB' or 2_000_000_000, got {memory!r}")
    return nbytes
