"""The form of an array: its library, device, type and shape. For calls that are repeated with arrays of one form.

To see an array (`view.view`) finds out what the array is. Where that is known beforehand, a comparison is enough, and
then the address is all that a call needs. The adapters of NumPy, CuPy and PyTorch have such a comparison
(`Library.addresses`). Arrays of other libraries are seen at each call.

An array that a call writes to has a form, too: that of the keys (`OF_THE_KEYS`), or that of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import DeviceError, DtypeError, ParameterError, ShapeError
from .library import ArrayView, Dtype, Shape
from .view import view

__all__ = ["OF_THE_KEYS", "OF_THE_PLAN", "Form", "FormOf", "meet", "share_memory"]


class FormOf(NamedTuple):
    """What a form comes from, in messages.

    Attributes
    ----------
    why
        Why arrays have to be of this form.
    another, another_size
        How to get another form, or a form of another size; empty if there is no way.
    """

    why: str
    another: str
    another_size: str


OF_THE_PLAN = FormOf(
    "for which the plan was made", "make a plan with like={what}, or ", "make a plan for that number of keys, or "
)
OF_THE_KEYS = FormOf("as the keys are", "", "")


class Form:
    """What all arrays in one place of a call are.

    Parameters
    ----------
    like
        An array of the same library on the same device.
    shape, dtype
        Of the arrays.
    what
        Their name in a message.
    is_written
        Whether the call writes to them.
    of
        What the form comes from.

    Attributes
    ----------
    address
        ``address(array)`` answers the address of an array of this form, if its adapter can compare quickly. None for
        any other array: then `see` either takes the array or says what is wrong.
    note_write
        ``note_write(array)`` tells the library of such an array that the call writes to it; None if it need not know.
    """

    __slots__ = ("_is_written", "_of", "_what", "address", "dtype", "like", "note_write", "shape")

    def __init__(
        self,
        like: ArrayView,
        shape: Shape,
        dtype: Dtype,
        what: str,
        *,
        is_written: bool = False,
        of: FormOf = OF_THE_PLAN,
    ) -> None:
        self.like, self.shape, self.dtype = like, shape, dtype
        self._what, self._is_written, self._of = what, is_written, of
        compare = getattr(like.library, "addresses", None)
        self.address: Callable[[Any], int | None] = compare(like, shape, dtype, is_written) if compare else _unknown
        self.note_write: Callable[[Any], None] | None = getattr(like.library, "note_write", None)

    def see(self, array: Any) -> ArrayView:
        """View an array of this form.

        Raises
        ------
        DeviceError, DtypeError, ShapeError
            If it is on another device, of another type or of another shape.
        ParameterError
            If it is of another library; or if it is to be written to, and cannot be.
        """
        what, like, seen = self._what, self.like, view(array)
        why, another, another_size = self._of.why, self._of.another.format(what=what), self._of.another_size
        mend = f"leave {what}= out" if self._is_written else "call the verb of the table"
        if seen.device != like.device:
            raise DeviceError(
                f"{what} must be on {like.device}, {why}, got an array on {seen.device}: {another}move the array"
            )
        if seen.kind != like.kind:
            raise ParameterError(
                f"{what} must be an array of {like.kind}, {why}, got one of {seen.kind}: {another}{mend}"
            )
        if seen.dtype != self.dtype:
            raise DtypeError(f"{what} must be {self.dtype}, got {seen.dtype}: convert the array, or {mend}")
        if seen.shape != self.shape:
            raise ShapeError(f"{what} must have shape {self.shape}, {why}, got {seen.shape}: {another_size}{mend}")
        if self._is_written and self.address(array) is None:
            raise ParameterError(
                f"{what} must be an array of {like.kind} that is contiguous, aligned and can be written to, got "
                f"{type(array).__name__}: {mend}"
            )
        return seen

    def see_to_write(self, array: Any) -> ArrayView:
        """As `see`, of an array that the call then writes to."""
        seen = self.see(array)
        if self.note_write is not None:
            self.note_write(array)
        return seen

    @property
    def nbytes(self) -> int:
        """Bytes of an array of this form."""
        return math.prod(self.shape) * self.dtype.itemsize


def _unknown(array: Any) -> None:
    """None: `Form.see` has to look."""


def meet(at: int, nbytes: int, other: int, other_bytes: int) -> bool:
    """Whether two ranges of addresses share an address."""
    return at < other + other_bytes and other < at + nbytes


def share_memory(one: ArrayView, other: ArrayView) -> bool:
    """Whether two arrays share memory. Addresses of the host and of all GPUs differ."""
    return meet(one.ptr, one.nbytes, other.ptr, other.nbytes)
