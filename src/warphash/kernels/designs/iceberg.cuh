// Iceberg hashing: most keys go into their primary bucket, up to a threshold; the rest into the emptiest of their
// secondary buckets. No key ever moves.
// Source: Better GPU Hash Tables (Awad et al., 2021), sections III-C and V-D, Listing 6.
//
// Layout: buckets of b slots (core/slot.cuh), b in {8, 16, 32}, no metadata. The first `threshold` slots of a bucket
// are its primary region, open to every key that hashes there first; the others are for keys sent there as secondaries,
// and for primaries whose secondaries are both full.
//
// Find reads the primary, then all secondaries. The paper reads all three buckets for every absent key. But a primary
// whose region was never full has sent no key away, so find stops there (early_exit=False restores the paper's counts).
//
// Place: 1. if the primary region has a vacant slot, swap the pair in; 2. else read all secondaries and take the
// emptiest, the last on ties; 3. if all are full, take any vacant slot of the primary; 4. if there is none, the key
// is not placed. Keys of a large batch take step 1 all together, and then the others (buckets/insert.cuh).
//
// The paper has two secondaries (hashes = 3). With three, buckets of 16 slots hold 0.91 in place of 0.86: section VIII
// asks for such loads, and leaves the probing behind the threshold open.
//
// Departures. The text sends a key away at "at least t" keys, and Listing 6 at more than t. The published probe counts
// match load >= floor(t b) + 1, so the region has floor(t b) + 1 slots, but never all b. Listing 6 breaks ties toward the first
// secondary. The published find counts match ties toward the second, but for the figures of section VII-A at load 0.86,
// which have the listing's ties.
// Listing 6 goes back to the primary if either secondary is full. The text goes back only if both are, as step 3 does:
// the listing would fail where the other secondary has room.
#pragma once
#include "buckets/abi.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct Iceberg : OverBuckets {
  using S = S_;
  using Pair = typename S::Pair;
  static constexpr bool kSettles = true, kMovesKeys = false, kReadsFirst = true;
  WARPHASH_FN static i32 settle_slots(const Table& t) { return static_cast<i32>(t.threshold); }
  WARPHASH_FN static i32 region(const Table& t) { return static_cast<i32>(t.threshold); }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    return probe.advance(t, seen, t.early_exit && probe.function == 0);
  }

  struct Placement {
    Pair hand;
    Named<S> named;
    u32 bucket;
    u32 function;
    i32 primary_vacant;  // the first vacant slot of the primary bucket; kNotSeen before it was read
    Lightest<S> best;
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32) {
    const Pair hand = Pair::make(probe.named.key, value);
    return {hand, probe.named, probe.bucket, probe.function, kNotSeen, Lightest<S>::none()};
  }

  static constexpr i32 kNotSeen = -1;

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.hit >= 0) return Placed::kWasThere;
    if (p.function == 0) {
      p.primary_vacant = seen.vacant;
      if (seen.vacant < static_cast<i32>(t.threshold))
        return S::occupy(S::at(t, p.bucket) + seen.vacant, p.hand) ? Placed::kInserted : Placed::kGoesOn;
    } else {
      p.best.offer_winning_ties(p.bucket, seen.vacant);
    }
    if (p.function + 1 < t.hashes) {
      p.bucket = bucket_of(t, p.named, ++p.function);
      return Placed::kGoesOn;
    }
    const u32 primary = bucket_of(t, p.named, 0);
    if (p.best.found() || p.primary_vacant != kNotSeen) {
      if (!p.best.found()) p.best.offer(primary, p.primary_vacant);
      if (!p.best.found()) return Placed::kNoRoom;
      if (S::occupy(S::at(t, p.best.bucket) + p.best.load, p.hand)) return Placed::kInserted;
    }
    p.bucket = primary;
    p.function = 0;
    p.best = Lightest<S>::none();
    return Placed::kGoesOn;
  }
};

}  // namespace warphash
