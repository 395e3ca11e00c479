"""A find beside inserts misses a key that is on the move in a cuckoo table, and never one of a table that moves none.

Stadium Hashing, section II, Limitations, and Figure 3. No table of ours runs finds beside inserts that move keys: the
kernel of this test does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulated.scenarios import emulation
from support.engines import missing
from support.inside import storage_of
from warphash import HashMap, Operation
from warphash.runtime.abi import REPORT_WORDS, BucketBatch

pytestmark = pytest.mark.skipif(bool(missing("emulated")), reason=missing("emulated") or "it runs")

SCHEDULES = range(1, 9)
HELD, NEW = 140, 110
"""Of 278 slots: the new keys move many of the held ones."""

KERNEL = """
namespace warphash {
// Even elements are searched for, odd ones are placed.
template <class D>
struct FindsBesidePlaces {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  static constexpr bool kProbes = true, kReads = true, kSuspends = false, kCounts = true;
  static constexpr bool kFrozen = false, kVacancy = true;
  static constexpr int kLists = 0, kPartBytes = 128;
  struct State {
    typename Find<D>::State find;
    typename Place<D>::State place;
    bool finds;
    u32 bucket() const { return finds ? find.bucket() : place.bucket(); }
    typename S::Word key() const { return finds ? find.key() : place.key(); }
  };
  static i32 region(const Table&) { return 0; }
  static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.finds = i % 2 == 0;
    return s.finds ? Find<D>::start(t, b, i, s.find) : Place<D>::start(t, b, i, s.place);
  }
  static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    return s.finds ? Find<D>::step(t, b, s.find, seen) : Place<D>::step(t, b, s.place, seen);
  }
  static void finish(const Table& t, const Batch& b, u64 i, State& s, bool live, Tally& tally) {
    if (!live) return;
    if (s.finds)
      set_flag(b, static_cast<u32>(i), s.find.found);
    else
      Place<D>::finish(t, b, i, s.place, live, tally);
  }
};
}  // namespace warphash
WARPHASH_ENTRY(finds_beside_places, warphash::FindsBesidePlaces<WARPHASH_DESIGN(Cuckoo, warphash::u32, true, 1)>)
"""


def with_kernel(source: str) -> str:
    return source + KERNEL if "WARPHASH_ENTRIES(Cuckoo, warphash::u32, true, 1)" in source else source


def batch_of(rng: np.random.Generator) -> tuple[Any, Any]:
    """Held keys, and a batch in which these are the even elements and new keys the odd ones."""
    keys = rng.permutation(np.arange(1, 10_000, dtype=np.uint32))[: HELD + NEW]
    batch = np.empty(2 * NEW, np.uint32)
    batch[::2], batch[1::2] = rng.choice(keys[:HELD], NEW), keys[HELD:]
    return keys[:HELD], batch


def made(design: str, held: Any, **parameters: Any) -> Any:
    table = HashMap(
        "u4", "u4", device="emulated", design=design, capacity=HELD + NEW, load_factor=0.9, seed=3, **parameters
    )
    table.insert(held, held)
    return table


def missed_by_cuckoo(seed: int) -> int:
    """How many held keys finds miss beside inserts."""
    held, batch = batch_of(np.random.default_rng(seed))
    with emulation(with_kernel, seed):
        table = made("cuckoo", held)
        array = storage_of(table).store.array
        engine = array.engine
        keys, flags = engine.from_host(batch), engine.allocate(len(batch))
        report, displaced = engine.allocate(8 * REPORT_WORDS), engine.allocate(8 * len(batch))
        engine.fill(report.ptr, 0, report.nbytes)
        given = BucketBatch(n=len(batch), keys=keys.ptr, values=keys.ptr, out_flags=flags.ptr, random=seed)
        given.report, given.displaced = report.ptr, displaced.ptr
        array.program.run("finds_beside_places", array.table, given, len(batch), None)
        found = engine.to_host(flags.ptr, np.uint8, len(batch))[::2]
    return int((found == 0).sum())


def missed_by_stadium(seed: int, in_flight: str) -> int:
    held, batch = batch_of(np.random.default_rng(seed))
    operations = np.tile(np.array([Operation.FIND, Operation.INSERT], np.uint8), NEW)
    with emulation(str, seed):
        table = made("stadium", held, in_flight=in_flight)
        values, done = table.execute(operations, batch, batch)
        assert done[1::2].all() and len(table) == HELD + NEW
        assert (values[::2][done[::2]] == batch[::2][done[::2]]).all()
    return int((~done[::2]).sum())


def test_finds_miss_keys_that_a_cuckoo_table_moves() -> None:
    assert sum(missed_by_cuckoo(seed) for seed in SCHEDULES) > 0


@pytest.mark.parametrize("in_flight", ["ignore", "wait"])
def test_finds_miss_no_key_of_a_table_that_moves_none(in_flight: str) -> None:
    assert [missed_by_stadium(seed, in_flight) for seed in SCHEDULES] == [0] * len(SCHEDULES)
