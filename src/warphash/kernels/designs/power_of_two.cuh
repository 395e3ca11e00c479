// The power of two choices, or more: a key goes into the emptiest of h buckets and never moves.
// Source: Better GPU Hash Tables (Awad et al., 2021), sections III-B and V-C, Listing 5. The paper measures h = 2.
//
// Layout: buckets of b slots (core/slot.cuh), b in {8, 16, 32}, no metadata.
//
// Find reads H0(k), H1(k), …; an open bucket proves nothing, as the key may have gone to an emptier one.
//
// Place: read all h buckets. If the key is there already, done. If all are full, the key is not placed. Else swap the
// pair into the first vacant slot of the least loaded bucket, the first on ties. If another thread was faster, read all
// again. The load of a bucket is the index of its first vacant slot, which is the number of its keys if none was
// erased.
#pragma once
#include "buckets/abi.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct PowerOfTwo : OverBuckets {
  using S = S_;
  using Pair = typename S::Pair;
  static constexpr bool kSettles = false, kMovesKeys = false, kReadsFirst = true;
  WARPHASH_FN static i32 settle_slots(const Table&) { return 0; }
  WARPHASH_FN static i32 region(const Table&) { return 0; }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    return probe.advance(t, seen, false);
  }

  struct Placement {
    Pair hand;
    Named<S> named;
    u32 bucket;
    u32 function;  // whose bucket is being read
    Lightest<S> best;
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32) {
    return {Pair::make(probe.named.key, value), probe.named, probe.bucket, 0, Lightest<S>::none()};
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.hit >= 0) return Placed::kWasThere;
    p.best.offer(p.bucket, seen.vacant);
    if (++p.function < t.hashes) {
      p.bucket = bucket_of(t, p.named, p.function);
      return Placed::kGoesOn;
    }
    if (!p.best.found()) return Placed::kNoRoom;
    if (S::occupy(S::at(t, p.best.bucket) + p.best.load, p.hand)) return Placed::kInserted;
    p.function = 0;
    p.best = Lightest<S>::none();
    p.bucket = bucket_of(t, p.named, 0);
    return Placed::kGoesOn;
  }
};

}  // namespace warphash
