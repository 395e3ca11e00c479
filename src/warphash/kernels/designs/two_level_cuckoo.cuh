// Two-level cuckoo hashing (HH Hash): a first hash picks a bucket, and inside the bucket m-ary cuckoo hashing under
// seeds of the bucket's own picks the slot.
// Source: HH Hash, the write-up of a two-level cuckoo table on a GPU (its sections have no numbers).
//
// Layout: a directory of 16 bytes a bucket, and a range of slots for each (two_level/ranges.cuh). A range has m
// subtables, one for each function.
//   first level    bucket    = H(k) under constants of the table (core/hash.cuh)
//   second level   slot i    = i * end + h_i(k), h_i drawn from the seed of the bucket, end = slots / m
//
// Find: the entry of the bucket, then the slots of functions 0, 1, … until the key is met, or a slot that was never
// used: a key goes on to function i + 1 only from a slot that is taken, and slots never become "never used" again while
// the seeds stay. At a load factor of 0.35 and with m = 2, a key that is there takes 1.28 slots.
//
// Insert: two_level/insert.cuh and two_level/place.cuh. A batch is brought to its buckets; then a block places all new
// keys of one bucket in rounds, round r under function r mod m, and draws new seeds for this bucket alone if that fails.
//
// Sizes. `reg_load` is the load of a bucket under normal circumstances (the authors' REG_LOAD), and the default of
// `load_factor`. With sizing="squared" a mean bucket of n keys has n^2 slots for each function, as in FKS hashing: less
// than half a pair of its keys meets in the first slots. With m = 1 besides, a bucket draws seeds until no two keys meet,
// and a find reads one slot. A table is given more buckets when it is full, and fewer when `shrink` or load_bounds ask
// for it; a single bucket for which no seeds were found is given a range of twice the slots
// (storage/two_level/store.py).
//
// Departures from the write-up (docs/fidelity.md lists its claims):
//   1. The authors keep all slots in one vector, and found too late that it should be split. Our slots lie in segments,
//      and the directory has addresses. Their bucket takes 36 bytes besides its slots, ours 20.
//   2. They give the load factor, 0.35, but not m. With m = 2, which we take, 72 percent of the keys keep their first
//      slot; they report about 70.
//   3. In a round they write all slots, and look afterwards who lost. We exchange, so nobody has to look again.
//   4. They place a batch in the slots of the table. Our block places a bucket in memory of its own, and publishes the
//      bucket when all its keys have slots. A key whose first slot is vacant takes the slot before that.
//   5. FKS hashing gives each bucket the square of its own number of keys. We take the mean number: all ranges that a
//      table starts with are equal, and no pass over the keys has to count them first.
//   6. Keys may repeat in a batch, and buckets may get more keys than slots. The write-up says nothing of either.
//
// The authors sort nothing, and neither do we: a counter for each bucket brings a batch to its buckets
// (ScatterToRanges). What they tried before, a random order of functions and a sort by buckets, is measured in
// lab/figures/rejected.py.
#pragma once
#include "core/hash.cuh"
#include "two_level/abi.cuh"

namespace warphash {

template <class S_>
struct TwoLevelCuckoo : OverRanges {
  using S = S_;
  using Word = typename S::Word;

  WARPHASH_FN static u32 bucket_of(const TwoLevelTable& t, Word key) {
    return bucket_with(t, key, t.multiplier[0], t.addend[0]);
  }

  // Below `end`.
  WARPHASH_FN static u32 slot_of(const TwoLevelTable& t, Word key, u32 seed, u32 function, u32 end) {
    const u64 drawn = (static_cast<u64>(seed) << 2 | function) * 0x9e3779b97f4a7c15ull;
    if (t.family == kUniversal) {
      constexpr u64 p = sizeof(Word) == 4 ? 4294967291ull : (1ull << 61) - 1;
      const u64 a = mix(drawn ^ t.multiplier[1]), c = mix(drawn ^ t.addend[1]);
      return static_cast<u32>(universal(key, 1 + a % (p - 1), c % p) % end);
    }
    const Word constant = static_cast<Word>((sizeof(Word) == 4 ? drawn >> 32 : drawn) ^ t.multiplier[1]);
    return scale(mix(static_cast<Word>(key ^ constant)), end);
  }
};

}  // namespace warphash
