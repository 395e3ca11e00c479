// What every design shares: the walk of a lookup, and a choice between buckets by load.
#pragma once
#include "core/bucket.cuh"
#include "core/hash.cuh"

namespace warphash {

// The walk of a lookup through the buckets of functions 0, 1, 2, … in turn. The walk ends at the key, at the last
// function or, where the design allows it, at a bucket that is open and so never turned a key away.
template <class S>
struct Probe {
  Named<S> named;
  u32 function;
  u32 bucket;

  WARPHASH_FN static Probe start(const Table& t, typename S::Word key) {
    Probe p{Named<S>::of(key), 0, 0};
    p.bucket = bucket_of(t, p.named, 0);
    return p;
  }
  // The key is not in the bucket that was seen: moves on; false if it is nowhere. `stops_if_open`: an open bucket has
  // passed no key on.
  WARPHASH_FN bool advance(const Table& t, const BucketView<S>& seen, bool stops_if_open) {
    if (stops_if_open && seen.open) return false;
    if (++function >= t.hashes) return false;
    bucket = bucket_of(t, named, function);
    return true;
  }
};

// The bucket with the least load among those offered.
template <class S>
struct Lightest {
  u32 bucket;
  i32 load;

  WARPHASH_FN static Lightest none() { return {kNowhere, S::kSlots}; }
  WARPHASH_FN bool found() const { return load < S::kSlots; }
  WARPHASH_FN void offer(u32 other, i32 other_load) {
    if (other_load < load) bucket = other, load = other_load;
  }
  WARPHASH_FN void offer_winning_ties(u32 other, i32 other_load) {
    if (other_load <= load && other_load < S::kSlots) bucket = other, load = other_load;
  }
};

// How a placement ended, or that it continues at `bucket`.
enum class Placed { kGoesOn, kInserted, kWasThere, kNoRoom, kDisplaced, kWantsSlab };

}  // namespace warphash
