// DyHash: cuckoo hashing over d subtables of lines of keys, with a lock on each bucket.
// Source: Dynamic Hash Tables on GPUs, sections 4 and 5.2.
//
// Layout: subtables/lines.cuh. The locks are words beside the lines: a find never reads one.
//
// A key goes into a vacant slot of its first subtable i, else of subtable i + 1, and so on (subtables/insert.cuh,
// settle). Only if all its buckets are full, other keys move.
//
// Place (one key per call, no two calls with the same key, and the key is in no bucket), from the key's first subtable
// i on:
//   1. look at the bucket of subtable i;
//   2. take its lock (subtables/bucket_lock.cuh);
//   3. there was a vacant slot. If it still is vacant, put the pair there, unlock, done. Else unlock, and go to step 1;
//   4. the bucket is full. Exchange the pair with that of a random slot, and unlock. The victim goes on to subtable i +
//      1, after the last one to the first, from step 1. After chain_limit victims the pair in hand is displaced: it
//      goes to the list of displaced pairs, and a subtable is enlarged.
// A key that comes into a bucket outside its first subtable is entered into the overflow filter there
// (subtables/lines.cuh). While a subtable is halved (subtables/resize.cuh), steps 3 and 4 pass it over. A call that
// starts when a pair is displaced evicts nothing: it reports that its key was not placed.
//
// Why look before the lock. The lanes of a tile read a line together, but only one lane takes its lock. Under the lock
// that lane confirms a single slot, since any thread that came first took the first vacant one.
//
// Coordination. The protocol above is that of "lanes", the default. The name says who acts: each lane puts its own key,
// and `settle` takes no lock for a key of a word. With "voter" (the paper's Algorithm 2) and "spin" (the alternative
// that the paper argues against), a warp puts one key at a time, takes the lock before it looks, and confirms nothing
// (subtables/gpu/warp_insert.cuh). On a CPU a thread puts one key at a time, and all three are the same code.
//
// Departures. The paper draws one bucket for a key, puts the key there, by eviction if the bucket is full, and looks
// for the key in no other bucket. So a key that is inserted again while it lives in another subtable is stored twice.
// Here an insert looks in all buckets of a key, and so sees a vacant slot in any of them. The paper locks for each put:
// that made 4.75 G inserts/s on an H200, where the swap of a word makes 6.3 (docs/performance/subtables.md). Wider keys
// are put under the lock here, too. The paper's warp serves one of its lanes at a time; here each lane asks for a lock
// of its own, unless the table has another coordination.
#pragma once
#include "core/design.cuh"
#include "subtables/lines.cuh"

namespace warphash {

template <class S_>
struct DynamicCuckoo : OverSubtables {
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

  // Writes a pair into a slot of the bucket whose lock we hold. The key comes last: `settle` reads keys without the
  // lock.
  WARPHASH_FN static void put(const Table& t, u32 bucket, u32 slot, const Word& key, typename Value::Word value) {
    Value::put(S::value_at(t, bucket, slot), value, S::value_bytes(t));
    store_relaxed(&(S::at(t, bucket) + slot)->key, key);
  }

  // Whether a slot of the bucket whose lock we hold may take a key.
  WARPHASH_FN static bool is_vacant(const Table& t, u32 bucket, i32 slot) {
    return is_mark(load_relaxed(&(S::at(t, bucket) + slot)->key), 1);
  }

  // kHasLock: the bucket was seen under its lock, which the caller has and keeps.
  template <bool kHasLock = false>
  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    if ((kHasLock || !S::kWide) && seen.hit >= 0)
      return Placed::kWasThere;  // a copy, though the caller vouched for distinct keys
    const bool full = seen.vacant == S::kSlots;
    if (full && (!p.may_evict || p.reserved)) return Placed::kNoRoom;
    if (full && p.evictions == t.chain_limit) return Placed::kDisplaced;
    u32* const lock = S::lock_at(t, p.bucket);
    if (!kHasLock && !try_lock(lock)) return Placed::kGoesOn;
    Placed placed = Placed::kGoesOn;
    if (full) {
      evict(t, p);
    } else if (kHasLock || is_vacant(t, p.bucket, seen.vacant)) {
      put(t, p.bucket, static_cast<u32>(seen.vacant), p.key, p.value);
      if (!p.reserved) receive<S>(t, p.bucket, digest(t, p.key));
      placed = Placed::kInserted;
    }
    if (!kHasLock) unlock(lock);
    if (full) p.bucket = bucket_in(t, next(t, subtable_of(p.bucket), p.closed), digest(t, p.key));
    return placed;
  }

  // Exchanges the pair in hand with a random one of the full bucket.
  WARPHASH_FN static void evict(const Table& t, Placement& p) {
    ++p.evictions;
    const u32 victim = next_random(p.random) % S::kSlots;
    Word* const slot = &(S::at(t, p.bucket) + victim)->key;
    const Word key = load_relaxed(slot);
    p.value = Value::swap(S::value_at(t, p.bucket, victim), p.value, p.spare, S::value_bytes(t));
    store_relaxed(slot, p.key);
    receive<S>(t, p.bucket, digest(t, p.key));
    p.key = key;
  }

  WARPHASH_FN static u32 next(const Table& t, u32 subtable, u32 closed) {
    const u32 after = subtable_after(t, subtable);
    return after == closed ? subtable_after(t, after) : after;
  }
};

}  // namespace warphash
