// A slot: one key, or one key with its value, in a word that one atomic instruction can swap.
//
// Layout (bits, low to high)
//   set, 4-byte keys    [ key 32 ]                     set, 8-byte keys    [ key 64 ]
//   map, 4 + 4 bytes    [ key 32 | value 32 ]          map, 8 + 8 bytes    [ key 64 | value 64 ]
//   A map whose key and value differ in width takes the wider for both, zero-extended. Where no key ever moves, pairs of
//   8 + 8 bytes lie in columns instead (buckets/columns.cuh).
//
// States of a slot, told by its key word (all its other bits are then ones):
//   kEmpty      ~0   never used since the table was made
//   kTombstone  ~1   its key was erased; an insert may use it again
//   kBusy       ~2   being written, where the device has no 128-bit atomic (platform/cuda.cuh)
// A slot goes Empty -> key -> (key | Tombstone)*, never back to Empty. A bucket is filled from its first vacant slot,
// so its empty slots are always the last ones. A bucket with an empty slot was never full, and never turned a key away.
// So find may stop there, also after an erase (Better GPU Hash Tables, section III-A, allows the early exit only
// because nothing is ever erased there).
//
// Reserved buckets. The caller may use all keys, also those that equal one of these three patterns: the reserved keys.
// They live in the *reserved buckets*, which follow the hashed ones, under the names 0, 1 and 2 (their distance from
// kBusy). Each algorithm runs on reserved buckets as on any others, since these never overflow.
#pragma once
#include "core/abi.cuh"
#include "platform/platform.cuh"

namespace warphash {

constexpr u32 kNowhere = ~0u;  // no bucket

template <class Word, bool kHasValue>
struct Slot;

template <class Word>
struct alignas(sizeof(Word)) Slot<Word, false> {
  static constexpr bool kValued = false;
  Word key;
  WARPHASH_FN static Slot make(Word key, Word) { return {key}; }
  WARPHASH_FN Word payload() const { return Word{}; }
  // A test for vacancy looks at this fold of all words. If it looked at the key alone, the compiler would split the
  // vector load of a bucket.
  WARPHASH_FN Word folded() const { return key; }
};

template <class Word>
struct alignas(2 * sizeof(Word)) Slot<Word, true> {
  static constexpr bool kValued = true;
  Word key;
  Word value;
  WARPHASH_FN static Slot make(Word key, Word value) { return {key, value}; }
  WARPHASH_FN Word payload() const { return value; }
  WARPHASH_FN Word folded() const { return key & value; }
};

// The slots of a table: kSlots in a bucket.
template <class Word_, bool kHasValue_, int kSlots_>
struct Slots {
  using Table = warphash::Table;
  using Word = Word_;
  using Item = Slot<Word, kHasValue_>;  // the part of a slot that a look at a bucket reads
  using Pair = Item;                    // a key with its value, on its way
  static constexpr bool kHasValue = kHasValue_;
  static constexpr int kSlots = kSlots_;
  static constexpr int kBucketBytes = kSlots * static_cast<int>(sizeof(Item));
  static constexpr int kLookBytes = kBucketBytes;
  static constexpr u32 kReservedBuckets = kSlots >= 3 ? 1 : 3;
  static constexpr int kDataSlots = kSlots;  // the first of these hold pairs
  static constexpr bool kLinked =
      false;                             // the last slot of a bucket holds a pointer to another (chains/slab_slots.cuh)
  static constexpr bool kApart = false;  // keys and values lie in columns (buckets/columns.cuh)
  static constexpr bool kFar = false;    // the address of a bucket takes more than a multiplication
  static constexpr bool kSpread = false;  // a lane's vectors of a bucket lie apart (core/gpu/tile.cuh)
  WARPHASH_FN static u32 next_in(const Item&) { return kNowhere; }

  static constexpr Word kEmpty = static_cast<Word>(~0ull);
  static constexpr Word kTombstone = static_cast<Word>(~1ull);
  static constexpr Word kBusy = static_cast<Word>(~2ull);
  static constexpr Word kVacantFrom = kTombstone;  // keys from here on are those of vacant slots

  WARPHASH_FN static Item empty() { return Item::make(kEmpty, kEmpty); }
  WARPHASH_FN static Item tombstone() { return Item::make(kTombstone, kEmpty); }
  // The other bits of a vacant slot are ones, so the fold of its words is its key. No fold of a live slot exceeds its
  // key.
  WARPHASH_FN static bool is_vacant(const Item& s) { return s.folded() >= kTombstone; }
  WARPHASH_FN static bool holds_key(const Item& s) { return s.folded() < kTombstone; }
  WARPHASH_FN static bool is_empty(const Item& s) { return s.folded() == kEmpty; }

  WARPHASH_FN static bool is_reserved(Word key) { return key >= kBusy; }
  WARPHASH_FN static Word reserved_name(Word key) { return key - kBusy; }
  WARPHASH_FN static u32 reserved_bucket(const Table& t, Word name) {
    return static_cast<u32>(t.buckets) + (kReservedBuckets == 1 ? 0 : static_cast<u32>(name));
  }
  WARPHASH_FN static Item* bucket_of(void* slots, u64 bucket) { return static_cast<Item*>(slots) + bucket * kSlots; }
  WARPHASH_FN static Item* at(const Table& t, u32 bucket) {
    WARPHASH_ASSERT(bucket < t.buckets + kReservedBuckets);
    return bucket_of(reinterpret_cast<void*>(t.slots), bucket);
  }
  WARPHASH_FN static Word* value_of(Item* slot) { return &slot->value; }
  // The value of a slot that was seen, in a table that no thread changes.
  WARPHASH_FN static Word value_seen(const Item*, const Item& seen) { return seen.payload(); }
  WARPHASH_FN static Pair load(const Item* slot) { return load_slot<false>(slot); }
  WARPHASH_FN static void put(Item* slot, const Pair& pair) { *slot = pair; }
  // False if the slot does not hold what was seen there.
  WARPHASH_FN static bool vacate(Item* slot, const Item& seen) {
    return compare_exchange(slot, seen, tombstone()).key == seen.key;
  }
  // Swaps `item` into a vacant slot; false if another thread was faster. `combined`: other threads of this launch may
  // combine with its value.
  // Relaxed: a slot carries all of its pair, and publishes nothing else.
  WARPHASH_FN static bool occupy(Item* slot, const Pair& item, [[maybe_unused]] bool combined = false) {
    WARPHASH_ASSERT(holds_key(item));
    const Item old = compare_exchange(slot, empty(), item);
    if (old.key == kEmpty) return true;
    return old.key == kTombstone && compare_exchange(slot, tombstone(), item).key == kTombstone;
  }
};

// A key on its way: the name it has in its slot, and whether that slot is in a reserved bucket.
template <class S>
struct Named {
  typename S::Word key;
  bool reserved;
  WARPHASH_FN static Named of(typename S::Word key) {
    const bool reserved = S::is_reserved(key);
    return {reserved ? S::reserved_name(key) : key, reserved};
  }
};

}  // namespace warphash
