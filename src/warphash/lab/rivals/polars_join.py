"""The rival polars: a left join of two frames, which builds and looks up in one call."""

import polars as pl

from .base import Rival

RIVAL = Rival(
    "polars join",
    build=lambda keys, values: pl.DataFrame({"key": keys, "value": values}),
    find=lambda table, keys: (
        pl.DataFrame({"key": keys})
        .join(table, on="key", how="left", maintain_order="left")["value"]
        .is_not_null()
        .to_numpy()
    ),
    builds=False,
)
