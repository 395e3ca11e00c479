"""Queries 3 and 18 of TPC-H by joins and groups give the rows that DuckDB gives (specification, 2.4.3 and 2.4.18)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import warphash
from warphash.lab.data.datasets import generator

pytestmark = pytest.mark.skipif(generator() is None, reason="needs tpchgen-cli")

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import duckdb  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

Column = npt.NDArray[Any]

SCALES = [0.01, pytest.param(1, marks=pytest.mark.slow)]
TABLES = ("customer", "orders", "lineitem")

Q3 = """
select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
from customer, orders, lineitem
where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
  and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
group by l_orderkey, o_orderdate, o_shippriority
order by revenue desc, o_orderdate, l_orderkey limit 10
"""
Q18 = """
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity)
from customer, orders, lineitem
where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > {quantity})
  and c_custkey = o_custkey and o_orderkey = l_orderkey
group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
order by o_totalprice desc, o_orderdate, o_orderkey limit 100
"""


@pytest.fixture(scope="module", params=SCALES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tpch")
    asked = ["-s", f"{request.param:g}", "--tables", ",".join(TABLES), "--output-dir", str(made)]
    subprocess.run([str(generator()), "parquet", *asked], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def column(folder: Path) -> Callable[[str], Column]:
    """Makes the column of a name: numbers, days since 1970, or strings; decimal numbers in hundredths."""
    tables = {name[0]: next(folder.rglob(f"{name}*.parquet")) for name in TABLES}

    def read(name: str) -> Column:
        values = pq.read_table(tables[name[0]], columns=[name])[name].combine_chunks()
        if pa.types.is_decimal(values.type):
            values = pc.multiply(values, pa.scalar(100)).cast(pa.int64())
        elif pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        return np.asarray(values.to_numpy(zero_copy_only=False))

    return read


def rows_of(query: str, folder: Path) -> list[tuple[Any, ...]]:
    """What DuckDB answers."""
    with duckdb.connect() as connection:
        for name in TABLES:
            files = str(next(folder.rglob(f"{name}*.parquet")))
            connection.execute(f"create view {name} as select * from read_parquet('{files}')")
        return connection.execute(query).fetchall()


def days(of: date) -> int:
    return (of - date(1970, 1, 1)).days


def test_query_3(folder: Path, column: Callable[[str], Column]) -> None:
    day = days(date(1995, 3, 15))
    customers = column("c_custkey")[column("c_mktsegment") == "BUILDING"]
    early = np.flatnonzero(column("o_orderdate") < day)
    early = early[warphash.join(column("o_custkey")[early], customers, "semi").left]
    late = np.flatnonzero(column("l_shipdate") > day)
    items, orders = warphash.join(column("l_orderkey")[late], column("o_orderkey")[early])
    items, orders = late[items], early[orders]
    revenue = column("l_extendedprice")[items] * (100 - column("l_discount")[items])
    keys = column("l_orderkey")[items], column("o_orderdate")[orders], column("o_shippriority")[orders]
    made = warphash.group_by(keys).agg(revenue=(revenue, "sum"))
    order, ordered, priority = made.keys
    best = np.lexsort((order, ordered, -made["revenue"]))[:10]
    ours = list(zip(*(part[best].tolist() for part in (order, made["revenue"], ordered, priority)), strict=True))
    theirs = [(o, int(r * 10_000), days(d), p) for o, r, d, p in rows_of(Q3, folder)]
    assert ours == theirs and len(theirs) == 10


@pytest.mark.parametrize("quantity", [250, 300])
def test_query_18(folder: Path, column: Callable[[str], Column], quantity: int) -> None:
    sums = warphash.group_by(column("l_orderkey")).agg(quantity=(column("l_quantity"), "sum"))
    large = sums["quantity"] > 100 * quantity
    orders, of_sum = warphash.join(column("o_orderkey"), sums.keys[large], validate="1:1")
    of_order, customers = warphash.join(column("o_custkey")[orders], column("c_custkey"), validate="m:1")
    orders, of_sum = orders[of_order], of_sum[of_order]
    price, ordered, key = (column(name)[orders] for name in ("o_totalprice", "o_orderdate", "o_orderkey"))
    best = np.lexsort((key, ordered, -price))[:100]
    who = customers[best]
    columns = [column("c_name")[who], column("c_custkey")[who], key[best], ordered[best], price[best]]
    columns.append(sums["quantity"][large][of_sum][best])
    ours = list(zip(*(part.tolist() for part in columns), strict=True))
    theirs = [
        (name, customer, order, days(day), int(total * 100), int(sold * 100))
        for name, customer, order, day, total, sold in rows_of(Q18.format(quantity=quantity), folder)
    ]
    assert ours == theirs and len(theirs) > 0
