"""Sums and other summaries of the values of each key."""

from __future__ import annotations

from typing import Any

from ... import group_by
from . import inputs, oracles
from .base import Call, Op

__all__ = ["OPS"]

_FOUR = ("sum", "min", "max", "count")


def _ours(operations: tuple[str, ...]) -> Call:
    return Call(
        lambda at, pairs: group_by(pairs[0]).agg(**{name: (pairs[1], name) for name in operations}),
        lambda at, made: (made.keys, *(made[name] for name in operations)),
    )


def _codes(lib: Any, keys: Any) -> Any:
    return lib.unique(keys, return_inverse=True)


def _numpy_sums(np: Any, pairs: Any) -> Any:
    """Sums of `bincount` are float64, which has all sums of the input."""
    keys, codes = _codes(np, pairs[0])
    return keys, np.bincount(codes, weights=pairs[1], minlength=len(keys))


def _torch_sums(torch: Any, pairs: Any) -> Any:
    keys, codes = _codes(torch, pairs[0])
    return keys, torch.zeros(len(keys), dtype=pairs[1].dtype, device=keys.device).index_add_(0, codes, pairs[1])


def _pandas(operations: tuple[str, ...]) -> Call:
    return Call(
        lambda pd, frame: frame.groupby("key", sort=False)["value"].agg(list(operations)),
        lambda pd, frame: frame.reset_index(),
    )


def _polars(operations: tuple[str, ...]) -> Call:
    def run(pl: Any, frame: Any) -> Any:
        value = pl.col("value")
        return frame.group_by("key").agg(getattr(value, name)().alias(name) for name in operations)

    return Call(run)


def _pyarrow(operations: tuple[str, ...]) -> Call:
    return Call(
        lambda pa, table: table.group_by("key").aggregate([("value", name) for name in operations]),
        lambda pa, table: table.select(["key", *(f"value_{name}" for name in operations)]),
    )


def _duckdb(operations: tuple[str, ...]) -> Call:
    asked = ", ".join(f"{name}(value)::BIGINT AS {name}_of" for name in operations)
    return Call(lambda db, x: db.sql(f"SELECT key, {asked} FROM {x} GROUP BY key").fetchnumpy())


def _rivals(operations: tuple[str, ...]) -> dict[str, Call]:
    """Of libraries of frames."""
    makers = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow, "duckdb": _duckdb}
    return {name: make(operations) for name, make in makers.items()}


OPS = (
    Op(
        "group_sum",
        "Sums of the values of each key",
        inputs.pairs,
        oracles.sums,
        _ours(("sum",)),
        {
            "numpy": Call(_numpy_sums),
            **_rivals(("sum",)),
            "torch": Call(_torch_sums),
            "cupy": Call(_numpy_sums),
        },
    ),
    Op(
        "group_four",
        "Sum, minimum, maximum and count of the values of each key",
        inputs.pairs,
        oracles.four_summaries,
        _ours(_FOUR),
        _rivals(_FOUR),
    ),
)
"""Of values of keys."""
