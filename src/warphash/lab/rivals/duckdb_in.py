"""The rival DuckDB: ``key IN (SELECT key ...)``, a join that builds and looks up in one query."""

from typing import Any

import duckdb
import numpy as np

from ... import get_num_threads
from .base import Array, Rival


def _build(keys: Array, values: Array) -> Any:
    database = duckdb.connect(config={"threads": get_num_threads()})
    database.register("given", {"key": keys})
    database.execute("CREATE TABLE held AS SELECT key FROM given")
    return database


def _find(database: Any, keys: Array) -> Array:
    # With several threads the rows come in any order, so each row carries its place.
    database.register("asked", {"place": np.arange(len(keys)), "key": keys})
    rows = database.execute("SELECT place, key IN (SELECT key FROM held) AS found FROM asked").fetchnumpy()
    found = np.empty(len(keys), bool)
    found[rows["place"]] = rows["found"]
    return found


RIVAL = Rival("duckdb in", _build, _find, builds=False)
