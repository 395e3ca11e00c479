"""Right and wrong uses of the tables: read by a type checker, and never run.

`mypy --strict` accepts this file only if each wrong use is refused, for it also refuses a `type: ignore` without use.
"""

import numpy as np

import warphash
from warphash import HashMap, HashSet, MultiMap

keys, values = np.arange(10, dtype=np.uint64), np.ones(10, dtype=np.float32)

# ---- right
table = HashMap(
    "uint64", np.float32, capacity=10, design="iceberg", slots_per_bucket=32, load_factor=0.9, on_full="raise"
)
built = HashMap.from_arrays(keys, values, device="cpu", design="stadium", ticket_bits=4, lanes="clstash", seed=1)
bounded = HashSet(("int32", 2), max_size=100, evict="lfu", capacity=1000)
tiered = HashMap("u8", "f4", design="tiered", device_capacity=100, write="back", memory="host")
chosen = HashMap("u8", "f4", priorities=("load_factor", "query"))
listed = MultiMap("u8", "f4", design="slab", allocator="slab_light", capacity=7)
perfect = HashSet.from_arrays(keys, design="two_level_cuckoo", hashes=1, sizing="squared", range_slots=64)
built.upsert(keys, values, "add")
built.erase_if("values", "<=", 3.5)
built |= built
size: int = len(built)
there: bool = 5 in built
where: str = built.to("cpu").design
merged: HashMap = built | built
both: HashSet = perfect & perfect
share: float = built.stats().load_factor

# ---- wrong
HashMap("u8", "f4", desing="iceberg")  # type: ignore[call-arg]
HashMap("u8", "f4", design="icebreg")  # type: ignore[arg-type]
HashMap("u8", "f4", design="iceberg", slots_per_bucket="32")  # type: ignore[arg-type]
HashMap("u8", "f4", design="bcht", placement="second")  # type: ignore[arg-type]
HashMap("u8", "f4", on_full="grows")  # type: ignore[arg-type]
HashMap("u8", "f4", hash="sha256")  # type: ignore[arg-type]
HashMap("u8", "f4", max_size=10, evict="oldest")  # type: ignore[arg-type]
HashMap("u8", "f4", load_bounds=0.4)  # type: ignore[arg-type]
HashMap("u8")  # type: ignore[call-arg]
HashSet()  # type: ignore[call-arg]
HashSet.from_arrays(keys, values)  # type: ignore[call-arg]
HashMap.from_arrays(keys, values, seeds=1)  # type: ignore[call-arg]
MultiMap("u8", "f4", design="slub")  # type: ignore[arg-type]
built.upsert(keys, values, "ad")  # type: ignore[arg-type]
built.erase_if("value", "<", 3)  # type: ignore[arg-type]
built.erase_if("values", "=<", 3)  # type: ignore[arg-type]
perfect.erase_if("values", "<", 3)  # type: ignore[arg-type]
perfect.upsert(keys, values, "add")  # type: ignore[attr-defined]
warphash.Hashmap("u8", "f4")  # type: ignore[attr-defined]
