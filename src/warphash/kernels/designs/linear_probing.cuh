// Linear probing: a key lives in the first bucket with room from its own on.
// Source: the baseline Linear of Dynamic Hash Tables on GPUs (section 6.1).
//
// Layout: buckets of b slots (core/slot.cuh), b in {1, 8, 16, 32}, no metadata. The buckets are a ring: behind the last
// hashed one comes the first. The reserved bucket is no part of the ring.
//
// Find: H0(k), then the buckets behind it, until the key is met, a bucket that was never full, or probe_limit of them.
//
// Place (one key per call, no two calls with the same key): read the bucket; the key is there already: done; a vacant
// slot: swap the pair in, another was faster: read again; full: the next bucket. Back at the first, or behind
// probe_limit of them: not placed.
//
// Why buckets. The paper's table is probed slot by slot, by a thread for each key: b = 1. With more slots, a probe
// reads a bucket, which is what the memory of a GPU or a CPU gives at once, and a run of full slots that ends inside a
// bucket costs nothing. No key moves, but runs grow like 1 / (1 - load factor)^2.
//
// Why a limit. Without a limit, each key of a batch beyond the room of a table looks at the whole table. The paper's
// keys fail, too (Tables 4 to 8), but the paper does not tell its limit: with 512 slots, ours fail about as often. At a
// load factor x the share of keys that go further than n slots falls like exp(-n (1 - x)^2). Of three million keys at
// 0.95, none went further than 4,096. The default is 16,384.
#pragma once
#include "buckets/abi.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct LinearProbing : OverBuckets {
  using S = S_;
  using Pair = typename S::Pair;
  static constexpr bool kSettles = true, kMovesKeys = false, kReadsFirst = true;
  WARPHASH_FN static i32 settle_slots(const Table&) { return S::kSlots; }
  WARPHASH_FN static i32 region(const Table&) { return S::kSlots; }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    return !seen.open && go_on(t, probe.named.reserved, probe.function, probe.bucket);
  }

  struct Placement {
    Pair hand;
    u32 bucket;
    u32 passed;  // buckets that were full
    bool reserved;
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32) {
    return {Pair::make(probe.named.key, value), probe.bucket, 0, probe.named.reserved};
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.hit >= 0) return Placed::kWasThere;
    if (seen.vacant < S::kSlots)
      return S::occupy(S::at(t, p.bucket) + seen.vacant, p.hand) ? Placed::kInserted : Placed::kGoesOn;
    return go_on(t, p.reserved, p.passed, p.bucket) ? Placed::kGoesOn : Placed::kNoRoom;
  }

 private:
  // Goes to the next bucket of the ring; false after as many as a key may pass, and in the reserved bucket.
  WARPHASH_FN static bool go_on(const Table& t, bool reserved, u32& passed, u32& bucket) {
    if (reserved || ++passed >= t.buckets || passed >= t.probe_limit) return false;
    if (++bucket == t.buckets) bucket = 0;
    return true;
  }
};

}  // namespace warphash
