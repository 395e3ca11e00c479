"""The rival ``polars.Series.is_in``, which builds and looks up in one call."""

import polars as pl

from .base import Rival

RIVAL = Rival(
    "polars is_in",
    build=lambda keys, values: pl.Series(keys),
    find=lambda table, keys: pl.Series(keys).is_in(table.implode()).to_numpy(),
    builds=False,
)
