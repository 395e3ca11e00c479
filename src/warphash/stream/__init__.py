"""Verbs for streams of rows that take more memory than there is, with Parquet files or batches of Arrow in and out.

>>> import pyarrow as pa
>>> from warphash import stream
>>> batches = iter([pa.table({"user": [7, 3]}), pa.table({"user": [3, 9]})])
>>> stream.dedupe(batches, "user", memory="1GB").read_all()["user"].to_pylist()
[7, 3, 9]
"""

from __future__ import annotations

from .dedupe import dedupe
from .group_by import count, group_by, unique
from .join import join

__all__ = ["count", "dedupe", "group_by", "join", "unique"]
