"""Right and wrong uses of the tables: read by two type checkers, and never run.

`mypy --strict` and pyright accept this file only if each wrong use is refused, for both also refuse a `type: ignore`
without use (of pyright, `reportUnnecessaryTypeIgnoreComment` in ``pyproject.toml``).
"""

from collections.abc import Iterator
from typing import Any, TypeAlias, assert_type

import numpy as np
from numpy.typing import NDArray

import warphash
from warphash import HashMap, HashSet, MultiMap

keys, values = np.arange(10, dtype=np.uint64), np.ones(10, dtype=np.float32)
flags_of_keys = np.ones(10, dtype=np.bool_)

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

# ---- results: NumPy arrays of the table's types, or arrays of the class that was given
Bools: TypeAlias = NDArray[np.bool_]
Keys: TypeAlias = NDArray[np.uint64]
Values: TypeAlias = NDArray[np.float32]


class Tensor:
    """Stands for an array of CuPy or PyTorch, of which a checker may know nothing where these are not installed."""

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {}

    def __dlpack__(self, *, stream: int | None = None) -> object:
        return stream


class Series:
    """Stands for a column of pandas."""

    @property
    def index(self) -> object:
        return 0

    def to_frame(self) -> object:
        return 0


tensor, series = Tensor(), Series()
assert_type(built, HashMap[np.uint64, np.float32])
assert_type(HashMap(np.uint64, np.dtype(np.float32)), HashMap[np.uint64, np.float32])
assert_type(HashSet.from_arrays(keys), HashSet[np.uint64])
assert_type(HashMap(["str", "int64"], np.float64), HashMap[Any, np.float64])  # keys of several columns
assert_type(HashMap(("str", "int64", "bool"), np.float64), HashMap[Any, np.float64])
assert_type(HashSet({"name": "str", "id": "int64"}), HashSet[Any])
assert_type(HashMap.from_arrays((keys, ["a", "b"]), values), HashMap[Any, np.float32])
assert_type(HashMap(np.int64, np.float64, capacity=5), HashMap[np.int64, np.float64])
assert_type(HashMap(np.int64, ("f4", (64,))), HashMap[np.int64, Any])
assert_type(MultiMap.from_arrays(keys, [1, 2]), MultiMap[np.uint64, Any])
assert_type(HashMap.from_arrays(tensor, tensor), HashMap[Any, Any])
numbered = HashMap(np.uint64, np.int64)
named: HashMap[np.uint64, np.float32] = HashMap("uint64", "float32")

assert_type(built.find(keys), tuple[Values, Bools])
assert_type(built.find(keys, order="any"), tuple[Keys, Values, Bools])
assert_type(built.find(tensor, order="any"), tuple[Tensor, Tensor, Tensor])
assert_type(built.contains(keys, order="any"), tuple[Keys, Bools])
assert_type(built.find([1, 2], default=5), tuple[Values, Bools])
assert_type(built.find(tensor), tuple[Tensor, Tensor])
assert_type(built.find(series), tuple[Series, Series])
assert_type(built.find_or_insert(keys, 1), tuple[Values, Bools])
assert_type(built.find_or_insert(tensor, tensor), tuple[Tensor, Tensor])
assert_type(numbered.number(keys, first=1), tuple[NDArray[np.int64], Bools])
assert_type(numbered.number(tensor), tuple[Tensor, Tensor])
assert_type(built.insert(keys, values, assume_unique=True), Bools)
assert_type(built.insert(tensor, 1), Tensor)
assert_type(built.assign(series, values), Series)
assert_type(built.upsert(keys, values, "add"), Bools)
assert_type(built.contains(keys), Bools)
assert_type(built.contains(tensor), Tensor)
assert_type(built.erase(keys), Bools)
assert_type(built.probe_counts(keys), NDArray[np.uint32])
assert_type(built.execute(keys, keys, values), tuple[Values, Bools])
assert_type(built[keys], Values)
assert_type(built[[5, 6]], Values)
assert_type(built[5], np.float32)
assert_type(built[tensor], Tensor)
assert_type(built.get(5), np.float32 | None)
assert_type(built.get(5, "none"), np.float32 | str)
assert_type(built.get(keys, 0), Values)
assert_type(built.pop(5), np.float32)
assert_type(built.pop(tensor, 0), Tensor)
assert_type(built.setdefault(keys, 0), Values)
assert_type(built.keys(), Keys)
assert_type(built.keys(like="numpy"), Keys)
assert_type(built.keys(like=tensor), Tensor)
assert_type(built.values(), Values)
assert_type(built.to_arrays(), tuple[Keys, Values])
assert_type(built.to_arrays(like=series), tuple[Series, Series])
assert_type(bounded.evict(5, like=tensor), Tensor)
assert_type(iter(built), Iterator[np.uint64])
assert_type(dict(built.items()), dict[np.uint64, np.float32])
assert_type(HashMap.from_arrays(tensor, tensor).keys(), Any)  # of a kind that no checker knows
assert_type(built.copy().to("cpu"), HashMap[np.uint64, np.float32])
assert_type(perfect.insert(tensor), Tensor)
assert_type(perfect | perfect, HashSet[np.uint64])
plan, members = built.plan(10, like=keys), perfect.plan(10)
assert_type(plan.find(keys, out=values), tuple[Values, Bools])
assert_type(plan.find(tensor, out=tensor, found=tensor), tuple[Tensor, Tensor])
assert_type(plan.contains(keys), Bools)
assert_type(plan.insert(keys, values, added=flags_of_keys), Bools)
assert_type(plan.assign(tensor, tensor), Tensor)
assert_type(members.insert(keys, assume_unique=True), Bools)
assert_type(members.contains(tensor, found=tensor), Tensor)
pairs = MultiMap.from_arrays(keys, values)
assert_type(pairs.find_all(keys), tuple[Values, NDArray[np.int64]])
assert_type(pairs.find_all(tensor), tuple[Tensor, Tensor])
assert_type(pairs[5], Values)
assert_type(pairs.count(keys), NDArray[np.uint32])
total: np.float32 = (built.find(keys)[0] * 2).sum()
chosen_keys: Keys = keys[built.contains(keys)]

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
built.upsert(keys, values, "ad")  # type: ignore[call-overload]
built.erase_if("value", "<", 3)  # type: ignore[arg-type]
built.erase_if("values", "=<", 3)  # type: ignore[arg-type]
perfect.erase_if("values", "<", 3)  # type: ignore[arg-type]
members.find(keys)  # type: ignore[attr-defined]
plan.find(keys, defualt=1)  # type: ignore[call-overload]
plan.insert(keys)  # type: ignore[call-overload]
built.plan()  # type: ignore[call-arg]
perfect.upsert(keys, values, "add")  # type: ignore[attr-defined]
warphash.Hashmap("u8", "f4")  # type: ignore[attr-defined]
built.find(object())  # type: ignore[call-overload]
built.contains({1, 2})  # type: ignore[call-overload]
built.find(keys, defualt=1)  # type: ignore[call-overload]
built.find(keys, order="none")  # type: ignore[call-overload]
built.insert(keys)  # type: ignore[call-overload]
built.get(keys)  # type: ignore[call-overload]
built.keys(tensor)  # type: ignore[call-overload]
built.keys(like=5)  # type: ignore[call-overload]
HashMap.from_arrays(object(), values)  # type: ignore[arg-type]
HashMap("u8", None)  # type: ignore[arg-type]
wrong_table: HashMap[np.int32, np.float32] = built  # type: ignore[assignment]
wrong_values: NDArray[np.int64] = built[keys]  # type: ignore[assignment]
wrong_flags: NDArray[np.float32] = built.contains(keys)  # type: ignore[assignment]
flags = built.contains(tensor)
wrong_tensor: NDArray[np.bool_] = flags  # type: ignore[assignment]
