"""Jobs with frames: rows without duplicates, counts, joins, groups."""

from __future__ import annotations

from typing import Any

import numpy as np

import warphash

from . import inputs
from .base import Job

__all__ = ["FRAME_JOBS"]


# ---- rows without duplicates
def _dedupe(x: Any) -> Any:
    return warphash.drop_duplicates(x.pandas, ["user", "item"])


def _dedupe_polars_in(x: Any) -> Any:
    return warphash.drop_duplicates(x.polars, ["user", "item"])


def _dedupe_pandas(x: Any) -> Any:
    return x.pandas.drop_duplicates(["user", "item"])


def _dedupe_polars(x: Any) -> Any:
    return x.polars.unique(["user", "item"], keep="first", maintain_order=True)


def _dedupe_mixed(x: Any) -> Any:
    return warphash.drop_duplicates(x.pandas, ["user", "country"])


def _dedupe_mixed_polars_in(x: Any) -> Any:
    return warphash.drop_duplicates(x.polars, ["user", "country"])


def _dedupe_mixed_pandas(x: Any) -> Any:
    return x.pandas.drop_duplicates(["user", "country"])


def _dedupe_mixed_polars(x: Any) -> Any:
    return x.polars.unique(["user", "country"], keep="first", maintain_order=True)


# ---- counts
def _counts(x: Any) -> Any:
    return warphash.value_counts(x.pandas["user"])


def _counts_pandas(x: Any) -> Any:
    return x.pandas["user"].value_counts()


def _counts_polars(x: Any) -> Any:
    return x.polars["user"].value_counts(sort=True)["count"]


def _counts_of_strings(x: Any) -> Any:
    return warphash.value_counts(x.pandas["sku"])


def _counts_of_strings_pandas(x: Any) -> Any:
    return x.pandas["sku"].value_counts()


def _counts_of_strings_polars(x: Any) -> Any:
    return x.polars["sku"].value_counts(sort=True)["count"]


# ---- joins
def _left_join(x: Any) -> Any:
    return warphash.merge(x.pandas, x.prices, "left", on="sku")


def _left_join_polars_in(x: Any) -> Any:
    return warphash.merge(x.polars, x.polars_prices, "left", on="sku")


def _left_join_pandas(x: Any) -> Any:
    return x.pandas.merge(x.prices, "left", on="sku")


def _left_join_polars(x: Any) -> Any:
    return x.polars.join(x.polars_prices, on="sku", how="left", maintain_order="left")


def _many_to_many(x: Any) -> Any:
    return warphash.merge(x.pandas, x.right, on="item")


def _many_to_many_polars_in(x: Any) -> Any:
    return warphash.merge(x.polars, x.polars_right, on="item")


def _many_to_many_pandas(x: Any) -> Any:
    return x.pandas.merge(x.right, on="item")


def _many_to_many_polars(x: Any) -> Any:
    return x.polars.join(x.polars_right, on="item", maintain_order="left_right")


def _split(x: Any) -> Any:
    inside = warphash.isin(x.pandas["user"], x.known)
    return x.pandas[inside], x.pandas[~inside]


def _split_polars_in(x: Any) -> Any:
    inside = warphash.isin(x.polars["user"], x.known)
    return x.polars.filter(inside), x.polars.filter(~inside)


def _split_pandas(x: Any) -> Any:
    inside = x.pandas["user"].isin(x.known)
    return x.pandas[inside], x.pandas[~inside]


def _split_polars(x: Any) -> Any:
    known = x.polars_known.to_frame()
    return x.polars.join(known, on="user", how="semi"), x.polars.join(known, on="user", how="anti")


# ---- groups
def _group(x: Any) -> Any:
    return warphash.group_by(x.pandas, "user").agg(total=("amount", "sum"), n="size", mean=("amount", "mean"))


def _group_polars_in(x: Any) -> Any:
    return warphash.group_by(x.polars, "user").agg(total=("amount", "sum"), n="size", mean=("amount", "mean"))


def _group_pandas(x: Any) -> Any:
    return x.pandas.groupby("user", sort=False)["amount"].agg(total="sum", n="size", mean="mean")


def _group_polars(x: Any) -> Any:
    import polars as pl

    by_user = x.polars.group_by("user")
    return by_user.agg(pl.sum("amount").alias("total"), pl.len().alias("n"), pl.mean("amount").alias("mean"))


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
        {
            "warphash pandas": _dedupe,
            "warphash polars": _dedupe_polars_in,
            "pandas": _dedupe_pandas,
            "polars": _dedupe_polars,
        },
        _of_users,
    ),
    Job(
        "dedupe_mixed",
        "Rows without duplicates of an integer column and one of strings",
        inputs.events,
        {
            "warphash pandas": _dedupe_mixed,
            "warphash polars": _dedupe_mixed_polars_in,
            "pandas": _dedupe_mixed_pandas,
            "polars": _dedupe_mixed_polars,
        },
        _of_users,
    ),
    Job(
        "counts",
        "How often each integer is there, the most frequent first",
        inputs.events,
        {"warphash pandas": _counts, "pandas": _counts_pandas, "polars": _counts_polars},
        _counted,
    ),
    Job(
        "counts_of_strings",
        "How often each string is there, the most frequent first",
        inputs.events,
        {
            "warphash pandas": _counts_of_strings,
            "pandas": _counts_of_strings_pandas,
            "polars": _counts_of_strings_polars,
        },
        _counted,
    ),
    Job(
        "left_join",
        "Prices beside each row, by a column of strings",
        inputs.shops,
        {
            "warphash pandas": _left_join,
            "warphash polars": _left_join_polars_in,
            "pandas": _left_join_pandas,
            "polars": _left_join_polars,
        },
        _priced,
    ),
    Job(
        "many_to_many",
        "Each row beside all rows of its item",
        inputs.pages,
        {
            "warphash pandas": _many_to_many,
            "warphash polars": _many_to_many_polars_in,
            "pandas": _many_to_many_pandas,
            "polars": _many_to_many_polars,
        },
        _of_users,
    ),
    Job(
        "split",
        "Rows of known users, and the others",
        inputs.known_users,
        {
            "warphash pandas": _split,
            "warphash polars": _split_polars_in,
            "pandas": _split_pandas,
            "polars": _split_polars,
        },
        lambda answer: tuple(map(_of_users, answer)),
    ),
    Job(
        "group",
        "Sum, number and mean of each user",
        inputs.events,
        {
            "warphash pandas": _group,
            "warphash polars": _group_polars_in,
            "pandas": _group_pandas,
            "polars": _group_polars,
        },
        _sums,
    ),
)
