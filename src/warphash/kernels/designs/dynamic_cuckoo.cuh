// DyHash: cuckoo hashing over d subtables of lines of keys, with a lock on each bucket.
// Source: Dynamic Hash Tables on GPUs (the seed), sections IV and V-B (S0-06…12).
//
// Layout: core/subtables.cuh. The locks are words beside the lines: a find never reads one.
//
// Place (one key per call, no two calls with the same key, and the key is in no bucket), in the key's first subtable i:
//   1. the lock of the bucket of subtable i (core/bucket_lock.cuh);
//   2. a vacant slot: the pair goes there, done;
//   3. full: the pair takes a random slot; the victim goes on to subtable i + 1, after the last comes the first (S0-10);
//   4. unlock, and from step 1 with the victim. After chain_limit victims the pair in hand has no home: it goes to the
//      homeless list, and a subtable is enlarged.
// While a subtable is halved (resize.cuh), step 3 passes it over. A call that starts when something is homeless evicts nothing:
// it reports that its key was not placed.
//
// Departures. The seed looks for the key in the one bucket where it would put it, so that a key inserted again while it lives
// in another subtable is stored twice (S0-48): here `settle` (subtables.cuh) looks everywhere first. Its tile is a warp that
// holds one lock at a time; here a bucket's line is read by four lanes of 32 bytes, and each of them may hold a lock.
#pragma once
#include "core/design.cuh"
#include "core/subtables.cuh"

namespace warphash {

template <class S_>
struct DynamicCuckoo {
  using S = S_;
  using Word = typename S::Word;
  using Value = Carried<S::kValueBytes>;
  WARPHASH_FN static i32 region(const Table&) { return S::kSlots; }

  struct Placement {
    Word key;
    typename Value::Word value;
    u8* spare;  // where a victim's value goes, if it is no word
    u32 bucket;
    u32 random;
    u32 evictions;
    u32 closed;  // subtable to pass over
    bool reserved;
    bool may_evict;
  };

  // The pair into a slot of the bucket whose lock we hold. The key last: `settle` reads keys without the lock.
  WARPHASH_FN static void put(const Table& t, u32 bucket, u32 slot, const Word& key, typename Value::Word value) {
    Value::put(S::value_at(t, bucket, slot), value, S::value_bytes(t));
    store_relaxed(&(S::at(t, bucket) + slot)->key, key);
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const Seen<S>& seen) {
    if (seen.hit >= 0) return Placed::kWasThere;  // against the caller's word
    if (seen.vacant < S::kSlots) {
      put(t, p.bucket, static_cast<u32>(seen.vacant), p.key, p.value);
      return Placed::kInserted;
    }
    if (!p.may_evict || p.reserved) return Placed::kNoRoom;
    if (p.evictions == t.chain_limit) return Placed::kHomeless;
    ++p.evictions;
    const u32 victim = next_random(p.random) % S::kSlots;
    Word* const slot = &(S::at(t, p.bucket) + victim)->key;
    const Word key = load_relaxed(slot);
    p.value = Value::swap(S::value_at(t, p.bucket, victim), p.value, p.spare, S::value_bytes(t));
    store_relaxed(slot, p.key);
    p.key = key;
    p.bucket = bucket_in(t, next(t, subtable_of(p.bucket), p.closed), digest(key));
    return Placed::kGoesOn;
  }

  WARPHASH_FN static u32 next(const Table& t, u32 subtable, u32 closed) {
    const u32 after = subtable_after(t, subtable);
    return after == closed ? subtable_after(t, after) : after;
  }
};

}  // namespace warphash
