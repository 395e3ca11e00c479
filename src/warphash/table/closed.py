"""What a table has in place of its storage once it is closed."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import WarphashError

__all__ = ["ClosedStorage"]


class ClosedStorage:
    """A storage of which nothing is left.

    Parameters
    ----------
    mend
        What the caller may do, in words.
    """

    def __init__(self, mend: str) -> None:
        self._mend = mend

    def __getattr__(self, name: str) -> Any:
        return self._refuse()

    def _refuse(self) -> NoReturn:
        raise WarphashError(f"the table is closed: {self._mend}")
