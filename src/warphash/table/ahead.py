"""Compile the kernels of tables before any table is made: for images, clusters, and the first call of a service."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy.typing as npt

from ..arrays.row_type import Column
from ..errors import ParameterError
from ..runtime.cuda.machine_code import MachineCode
from ..runtime.devices import engine_for
from ..storage.hash_constants import HASHES
from ..storage.make import programs
from .options import bound_of, chosen

__all__ = ["Ahead", "compile_ahead", "parsed"]


class Ahead(NamedTuple):
    """A set of kernels that is in the cache now; ``compiled`` says whether it was not there before."""

    arch: str
    program: str
    compiled: bool


def compile_ahead(
    key: npt.DTypeLike,
    value: npt.DTypeLike | None,
    *,
    design: str,
    arch: Sequence[str] | None,
    evict: str | None,
    hash: str,
    parameters: Mapping[str, Any],
) -> Iterator[Ahead]:
    """Compile all kernels that tables of a kind may launch, as far as they are not in the cache.

    Parameters
    ----------
    arch
        Architectures such as ``"sm_90"``; None for that of the GPU.
    evict
        For tables with a bound (``max_size=``); None for tables without.

    Raises
    ------
    DtypeError, ParameterError
        As for a table.
    EngineUnavailable
        If there is no compiler, the compiler does not know the architecture, or there is no GPU and no ``arch``.
    """
    keys, values = Column.of_keys(key), None if value is None else Column.of_values(value)
    made, resolved = chosen(design, dict(parameters), on_gpu=evict is None)
    if hash not in HASHES:
        raise ParameterError(f"hash must be one of {HASHES}, got {hash!r}")
    wanted = list(
        programs(
            made,
            resolved,
            key_bytes=keys.nbytes,
            value_bytes=values.nbytes if values else 0,
            family=hash,
            bound=None if evict is None else bound_of(1, evict, "HashMap"),
        )
    )
    gpu: Any = None if arch else engine_for("cuda")
    for architecture in arch or (gpu.arch,):
        for spec in wanted:
            yield Ahead(architecture, spec.design, MachineCode(spec, architecture).compile_all())


def parsed(text: str) -> tuple[str, Any]:
    """A parameter in the form ``name=value``: its name and its value.

    Raises
    ------
    ParameterError
        If it is of another form.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ParameterError(f"a parameter has the form name=value, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
