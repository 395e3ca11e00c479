// Bucketed cuckoo hashing: a key lives in one of h buckets of b slots. A key that finds its bucket full takes the slot
// of another key, which moves on. With b = 1 and h = 4 this is the classic GPU cuckoo table.
// Source: Better GPU Hash Tables (Awad et al., 2021), sections III-A and V-B, Listings 3 and 4.
//
// Layout: buckets of b slots (core/slot.cuh), b in {1, 8, 16, 32}, no metadata.
//
// Find: buckets H0(k), H1(k), … until the key is met, or a bucket that was never full.
//
// Place, `placement="first"` (one key per call, no two calls with the same key):
//   1. read the bucket; a vacant slot: swap the pair in, done; another was faster: read again;
//   2. full: exchange the pair with a random slot of it; the victim goes to the function after the one that has it
//      here, lowest index first where several do (section III-A, footnote 5);
//   3. after chain_limit exchanges the pair in hand has no slot: it goes to the list of displaced pairs, and the table
//      is rebuilt.
// A call that starts when a pair is displaced already evicts nothing: it reports that its key was not placed, so the
// list is bounded by the calls in flight.
//
// Place, `placement="least_loaded"` (section III-A): reads all h buckets and takes the emptiest, the first on ties. If
// all are full, it exchanges with a random slot of a random one of them. A key may then skip an open bucket, so find
// reads on.
//
// With b = 1 there is no step 1, as in CUDPP: an exchange with a vacant slot is a swap into the slot (8.0 against 7.6 G
// inserts/s on an H200: docs/performance/insert.md).
//
// Departures from the listings. Listing 3 returns false where it succeeds and overwrites `bucket` by name; Listing 4's
// `i != num_hash_functions` is always true.
#pragma once
#include "buckets/abi.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct BucketedCuckoo : OverBuckets {
  using S = S_;
  using Item = typename S::Item;
  static constexpr bool kSettles = true, kMovesKeys = true, kReadsFirst = S::kSlots > 1;
  // Slots of the first bucket that a key may take without moving another.
  WARPHASH_FN static i32 settle_slots([[maybe_unused]] const Table& t) { return t.placement == kFirst ? S::kSlots : 0; }
  WARPHASH_FN static i32 region(const Table&) { return S::kSlots; }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    return probe.advance(t, seen, t.early_exit && t.placement == kFirst);
  }

  struct Placement {
    Item hand;
    u32 bucket;
    u32 random;
    u32 evictions;
    u32 function;  // least_loaded: the function whose bucket is read next
    bool reserved;
    bool may_evict;
    Lightest<S> best;
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32 random) {
    const Item item = Item::make(probe.named.key, value);
    return {item, probe.bucket, random, 0, 0, probe.named.reserved, true, Lightest<S>::none()};
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    return t.placement == kFirst ? step_first(t, p, seen) : step_lightest(t, p, seen);
  }

 private:
  WARPHASH_FN static Named<S> in_hand(const Placement& p) { return {p.hand.key, p.reserved}; }

  WARPHASH_FN static Placed step_first(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.vacant < S::kSlots)
      return S::occupy(S::at(t, p.bucket) + seen.vacant, p.hand) ? Placed::kInserted : Placed::kGoesOn;
    const Placed evicted = evict(t, p);
    if (evicted != Placed::kGoesOn) return evicted;
    p.bucket = bucket_after<S>(t, p.hand.key, p.bucket);
    return Placed::kGoesOn;
  }

  WARPHASH_FN static Placed step_lightest(const Table& t, Placement& p, const BucketView<S>& seen) {
    p.best.offer(p.bucket, seen.vacant);
    if (++p.function < t.hashes) {
      p.bucket = bucket_of(t, in_hand(p), p.function);
      return Placed::kGoesOn;
    }
    if (p.best.found()) {
      if (S::occupy(S::at(t, p.best.bucket) + p.best.load, p.hand)) return Placed::kInserted;
    } else {
      p.bucket = bucket_of(t, in_hand(p), next_random(p.random) % static_cast<u32>(t.hashes));
      const Placed evicted = evict(t, p);
      if (evicted != Placed::kGoesOn) return evicted;
    }
    p.best = Lightest<S>::none();
    p.function = 0;
    p.bucket = bucket_of(t, in_hand(p), 0);
    return Placed::kGoesOn;
  }

  // A reserved bucket is full only of copies of a key that the caller had vouched not to repeat: no copy moves.
  WARPHASH_FN static bool reserved_bucket_has(const Table& t, const Placement& p) {
    for (int j = 0; j < S::kSlots; ++j)
      if (load_slot<false>(S::at(t, p.bucket) + j).key == p.hand.key) return true;
    return false;
  }

  // Exchanges the pair in hand with a random slot of the full bucket p.bucket.
  WARPHASH_FN static Placed evict(const Table& t, Placement& p) {
    if (!p.may_evict) return Placed::kNoRoom;
    if (p.reserved && kReadsFirst) return reserved_bucket_has(t, p) ? Placed::kWasThere : Placed::kNoRoom;
    if (p.evictions == t.chain_limit) return Placed::kDisplaced;
    ++p.evictions;
    const u32 victim = next_random(p.random) % S::kSlots;
    p.hand = exchange(S::at(t, p.bucket) + victim, p.hand);
    if (S::is_vacant(p.hand)) return Placed::kInserted;
    return p.reserved ? Placed::kWasThere : Placed::kGoesOn;  // with b = 1 a reserved bucket has one key only
  }
};

}  // namespace warphash
