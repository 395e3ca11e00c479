"""Jobs with frames: rows without duplicates, counts, joins, groups.

A way takes the frames of one library. Where ours has one way for all libraries, it is given those of pandas, and those
of Polars.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

import warphash

from . import inputs
from .base import OURS, Job, Way

__all__ = ["FRAME_JOBS"]


# ---- rows without duplicates
def _dedupe(x: Any) -> Any:
    return warphash.drop_duplicates(x.frame, ["user", "item"])


def _dedupe_pandas(x: Any) -> Any:
    return x.frame.drop_duplicates(["user", "item"])


def _dedupe_polars(x: Any) -> Any:
    return x.frame.unique(["user", "item"], keep="first", maintain_order=True)


def _dedupe_mixed(x: Any) -> Any:
    return warphash.drop_duplicates(x.frame, ["user", "country"])


def _dedupe_mixed_pandas(x: Any) -> Any:
    return x.frame.drop_duplicates(["user", "country"])


def _dedupe_mixed_polars(x: Any) -> Any:
    return x.frame.unique(["user", "country"], keep="first", maintain_order=True)


# ---- counts
def _counts(x: Any) -> Any:
    return warphash.value_counts(x.frame["user"])


def _counts_pandas(x: Any) -> Any:
    return x.frame["user"].value_counts()


def _counts_polars(x: Any) -> Any:
    return x.frame["user"].value_counts(sort=True)["count"]


def _counts_of_strings(x: Any) -> Any:
    return warphash.value_counts(x.frame["sku"])


def _counts_of_strings_pandas(x: Any) -> Any:
    return x.frame["sku"].value_counts()


def _counts_of_strings_polars(x: Any) -> Any:
    return x.frame["sku"].value_counts(sort=True)["count"]


# ---- joins
def _left_join(x: Any) -> Any:
    return warphash.merge(x.frame, x.prices, "left", on="sku")


def _left_join_pandas(x: Any) -> Any:
    return x.frame.merge(x.prices, "left", on="sku")


def _left_join_polars(x: Any) -> Any:
    return x.frame.join(x.prices, on="sku", how="left", maintain_order="left")


def _many_to_many(x: Any) -> Any:
    return warphash.merge(x.frame, x.right, on="item")


def _many_to_many_pandas(x: Any) -> Any:
    return x.frame.merge(x.right, on="item")


def _many_to_many_polars(x: Any) -> Any:
    return x.frame.join(x.right, on="item", maintain_order="left_right")


def _split(x: Any) -> Any:
    inside = warphash.isin(x.frame["user"], x.known["user"])
    return x.frame[inside], x.frame[~inside]


def _split_polars_in(x: Any) -> Any:
    inside = warphash.isin(x.frame["user"], x.known["user"])
    return x.frame.filter(inside), x.frame.filter(~inside)


def _split_pandas(x: Any) -> Any:
    inside = x.frame["user"].isin(x.known["user"])
    return x.frame[inside], x.frame[~inside]


def _split_polars(x: Any) -> Any:
    inside = x.frame.join(x.known, on="user", how="semi")
    return inside, x.frame.join(x.known, on="user", how="anti")


# ---- groups
def _group(x: Any) -> Any:
    return warphash.group_by(x.frame, "user").agg(total=("amount", "sum"), n="size", mean=("amount", "mean"))


def _group_pandas(x: Any) -> Any:
    return x.frame.groupby("user", sort=False)["amount"].agg(total="sum", n="size", mean="mean")


def _group_polars(x: Any) -> Any:
    import polars as pl

    by_user = x.frame.group_by("user")
    return by_user.agg(pl.sum("amount").alias("total"), pl.len().alias("n"), pl.mean("amount").alias("mean"))


def _ways(ours: Way | dict[str, Way], pandas: Way, polars: Way) -> dict[str, Way]:
    """The contestants of a job. ``ours`` by the library of its frames, or one for both."""
    mine = ours if isinstance(ours, dict) else {"pandas": ours, "polars": ours}
    own = {f"{OURS} {library}": _given(library, way) for library, way in mine.items()}
    return {**own, "pandas": _given("pandas", pandas), "polars": _given("polars", polars)}


def _given(library: str, way: Way) -> Way:
    """The way with the frames of a library, of an input that has them of all libraries."""

    @wraps(way)  # its lines are counted
    def done(x: Any) -> Any:
        return way(getattr(x, library))

    return done


def _sums(frame: Any) -> tuple[int, int, float]:
    return len(frame), int(np.asarray(frame["n"]).sum()), round(float(np.asarray(frame["mean"]).sum()), 2)


def _counted(answer: Any) -> list[int]:
    return sorted(np.asarray(answer).tolist())


def _priced(frame: Any) -> tuple[int, float]:
    return len(frame), round(float(np.nansum(np.asarray(frame["price"], float))), 2)


def _of_users(frame: Any) -> tuple[int, int]:
    return len(frame), int(np.asarray(frame["user"]).sum())


FRAME_JOBS = (
    Job(
        "dedupe",
        "Rows without duplicates of two integer columns",
        inputs.events,
        _ways(_dedupe, _dedupe_pandas, _dedupe_polars),
        _of_users,
    ),
    Job(
        "dedupe_mixed",
        "Rows without duplicates of an integer column and one of strings",
        inputs.events,
        _ways(_dedupe_mixed, _dedupe_mixed_pandas, _dedupe_mixed_polars),
        _of_users,
    ),
    Job(
        "counts",
        "How often each integer is there, the most frequent first",
        inputs.events,
        _ways({"pandas": _counts}, _counts_pandas, _counts_polars),
        _counted,
    ),
    Job(
        "counts_of_strings",
        "How often each string is there, the most frequent first",
        inputs.events,
        _ways({"pandas": _counts_of_strings}, _counts_of_strings_pandas, _counts_of_strings_polars),
        _counted,
    ),
    Job(
        "left_join",
        "Prices beside each row, by a column of strings",
        inputs.shops,
        _ways(_left_join, _left_join_pandas, _left_join_polars),
        _priced,
    ),
    Job(
        "many_to_many",
        "Each row beside all rows of its item",
        inputs.pages,
        _ways(_many_to_many, _many_to_many_pandas, _many_to_many_polars),
        _of_users,
    ),
    Job(
        "split",
        "Rows of known users, and the others",
        inputs.known_users,
        _ways({"pandas": _split, "polars": _split_polars_in}, _split_pandas, _split_polars),
        lambda answer: tuple(map(_of_users, answer)),
    ),
    Job(
        "group",
        "Sum, number and mean of each user",
        inputs.events,
        _ways(_group, _group_pandas, _group_polars),
        _sums,
    ),
)
