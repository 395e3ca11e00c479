"""Join two tables on a two-column key, as a database would: build on the small side, probe with the large one."""

import numpy as np

import warphash

rng = np.random.default_rng(3)
key = np.dtype([("order", "u4"), ("line", "u4")])

parts = np.zeros(50_000, dtype=key)
parts["order"], parts["line"] = np.arange(50_000) // 4, np.arange(50_000) % 4
prices = rng.integers(1, 1000, size=len(parts)).astype(np.int64)

sales = np.zeros(200_000, dtype=key)
sales["order"], sales["line"] = rng.integers(0, 20_000, size=200_000), rng.integers(0, 4, size=200_000)

price_of = warphash.HashMap.from_arrays(parts, prices)
price, matched = price_of.find(sales)

assert (matched == (sales["order"] < 12_500)).all()
print(f"{matched.sum():,} of {len(sales):,} sales have a price; their sum is {price[matched].sum():,}")
