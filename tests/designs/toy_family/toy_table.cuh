// Two buckets to try in order: a key lives in the first with room, and never moves.
#pragma once
#include "buckets/abi.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct ToyTable : OverBuckets {
  using S = S_;
  using Pair = typename S::Pair;
  static constexpr bool kSettles = false, kMovesKeys = false, kReadsFirst = true;
  WARPHASH_FN static i32 settle_slots(const Table&) { return 0; }
  WARPHASH_FN static i32 region(const Table&) { return S::kSlots; }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    return probe.advance(t, seen, false);
  }

  struct Placement {
    Pair hand;
    Named<S> named;
    u32 bucket;
    u32 function;
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32) {
    return {Pair::make(probe.named.key, value), probe.named, probe.bucket, 0};
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.hit >= 0) return Placed::kWasThere;
    if (seen.vacant < S::kSlots)
      return S::occupy(S::at(t, p.bucket) + seen.vacant, p.hand) ? Placed::kInserted : Placed::kGoesOn;
    if (++p.function >= t.hashes) return Placed::kNoRoom;
    p.bucket = bucket_of(t, p.named, p.function);
    return Placed::kGoesOn;
  }
};

}  // namespace warphash
