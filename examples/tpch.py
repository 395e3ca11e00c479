"""Queries 3 and 18 of TPC-H with frames of Polars. DuckDB has to answer the same rows."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import polars as pl
import polars.selectors as cs

import warphash

Q3 = """
select l_orderkey, cast(10000 * sum(l_extendedprice * (1 - l_discount)) as bigint) as revenue, o_orderdate
from customer join orders on c_custkey = o_custkey join lineitem on l_orderkey = o_orderkey
where c_mktsegment = 'BUILDING' and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
group by all order by revenue desc, o_orderdate, l_orderkey limit 10
"""
Q18 = """
select c_name, o_orderkey, o_orderdate, cast(100 * o_totalprice as bigint), cast(100 * sum(l_quantity) as bigint)
from customer join orders on c_custkey = o_custkey join lineitem on l_orderkey = o_orderkey
group by c_name, o_orderkey, o_orderdate, o_totalprice having sum(l_quantity) > 250
order by o_totalprice desc, o_orderdate, o_orderkey limit 100
"""

Read = Callable[..., pl.DataFrame]
"""Reads columns of a table, decimal numbers in hundredths."""


def query_3(read: Read) -> pl.DataFrame:
    """The ten unshipped orders of the greatest revenue, in ten thousandths."""
    day = date(1995, 3, 15)
    customers = read("customer", "c_custkey", "c_mktsegment").filter(pl.col("c_mktsegment") == "BUILDING")
    orders = read("orders", "o_orderkey", "o_custkey", "o_orderdate").filter(pl.col("o_orderdate") < day)
    orders = orders.filter(warphash.isin(orders["o_custkey"], customers["c_custkey"]))
    items = read("lineitem", "l_orderkey", "l_extendedprice", "l_discount", "l_shipdate")
    items = items.filter(pl.col("l_shipdate") > day).with_columns(
        revenue=pl.col("l_extendedprice") * (100 - pl.col("l_discount"))
    )
    sold = warphash.merge(items, orders, left_on="l_orderkey", right_on="o_orderkey")
    sums = warphash.group_by(sold, ["l_orderkey", "o_orderdate"]).agg(revenue=("revenue", "sum"))
    best = sums.sort("revenue", "o_orderdate", "l_orderkey", descending=[True, False, False]).head(10)
    return best.select("l_orderkey", "revenue", "o_orderdate")


def query_18(read: Read) -> pl.DataFrame:
    """The hundred dearest orders of more than 250 pieces."""
    items = warphash.group_by(read("lineitem", "l_orderkey", "l_quantity"), "l_orderkey")
    large = items.agg(quantity=("l_quantity", "sum")).filter(pl.col("quantity") > 25_000)
    orders = read("orders", "o_orderkey", "o_custkey", "o_orderdate", "o_totalprice")
    sold = warphash.merge(orders, large, left_on="o_orderkey", right_on="l_orderkey", validate="1:1")
    customers = read("customer", "c_custkey", "c_name")
    sold = warphash.merge(sold, customers, left_on="o_custkey", right_on="c_custkey", validate="m:1")
    best = sold.sort("o_totalprice", "o_orderdate", "o_orderkey", descending=[True, False, False]).head(100)
    return best.select("c_name", "o_orderkey", "o_orderdate", "o_totalprice", "quantity")


def generate(folder: Path, scale: float) -> None:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    program = shutil.which("tpchgen-cli", path=beside)
    if program is None:
        raise SystemExit("needs tpchgen-cli: pip install tpchgen-cli")
    tables = ["--tables", "customer,orders,lineitem"]
    subprocess.run([program, "parquet", "-q", "-s", f"{scale:g}", *tables, "--output-dir", folder], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=60_000, help="about so many rows of the longest table")
    n = parser.parse_args().n
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        generate(Path(folder), n / 6_000_000)
        for table in ("customer", "orders", "lineitem"):
            connection.execute(f"create view {table} as select * from read_parquet('{folder}/{table}.parquet')")

        def read(table: str, *columns: str) -> pl.DataFrame:
            frame = pl.read_parquet(Path(folder, f"{table}.parquet"), columns=list(columns))
            return frame.with_columns((cs.decimal() * 100).cast(pl.Int64))

        for name, query, sql in (("Q3", query_3, Q3), ("Q18", query_18, Q18)):
            rows = query(read).rows()
            assert rows == connection.execute(sql).fetchall() and rows
            print(f"{name}: the first of {len(rows)} rows is {rows[0]}")


if __name__ == "__main__":
    main()
