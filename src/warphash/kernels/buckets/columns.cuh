// Slots of 16 bytes whose keys and values lie apart, each in a column of their bucket: for designs that never move a
// key.
//
// Layout (bytes) of a bucket of b slots, b in {16, 32}
//   [ keys     b of 8 ]
//   [ values   b of 8 ]
// Key and value of a slot are 8 b bytes from each other. States of a slot: as core/slot.cuh has them, told by its key.
//
// Why. A bucket of 32 pairs has 512 bytes. A look that needs only the keys reads 256 of them, so an absent key costs
// half as many lines. The price is a second random write for each insert, at 17 G/s. Large batches do not pay it: they
// come in the order of the parts of the table (buckets/gpu/partition.cuh) or, where no order helps, build a table of
// whole pairs, which one pass turns into columns (buckets/gpu/split.cuh). Buckets of 8 are one line, and stay pairs
// (docs/performance/columns.md).
//
// No atomic swaps a pair in columns whole. A design that moves keys needs such a swap, since a victim leaves with its
// value. In a design that moves no keys, there are three moments in which the two words of a slot could disagree:
//
//   insert   swaps the key in, then writes the value. Only an upsert of the same batch reads the value before the
//            kernel ends: it meets the key and combines with its value. So where a batch combines (`combined`):
//            1. the slot goes from vacant to kBusy; 2. the value is written; 3. the key is stored, with .release. A thread
//            that combines fences behind its look at the key, with .acquire.
//            Other inserts take a busy slot for vacant, fail to swap it, and look again. So a copy of a key on its way in
//            goes for the very slot that the key will have: vacant slots only fill meanwhile, in order.
//   assign   stores the value of a key that is there. The assign may store before the insert of the same batch does,
//            and then loses to it: one of the two values is kept, as promised.
//   erase    swaps the key for a tombstone, and leaves the value.
//
// Memory order of all else: relaxed; the ends of kernels publish values.
#pragma once
#include "core/slot.cuh"

namespace warphash {

template <class Word_, int kSlots_>
struct Columns : Slots<Word_, false, kSlots_> {
  using Base = Slots<Word_, false, kSlots_>;
  using typename Base::Item;
  using typename Base::Word;
  using Pair = Slot<Word, true>;
  using Base::kSlots;
  static constexpr bool kHasValue = true, kApart = true;
  static constexpr int kBucketBytes = kSlots * static_cast<int>(sizeof(Pair));
  static constexpr int kLookBytes = kBucketBytes / 2;
  static constexpr Word kVacantFrom = Base::kBusy;

  WARPHASH_FN static bool is_vacant(const Item& s) { return s.key >= kVacantFrom; }
  using Base::holds_key;
  WARPHASH_FN static bool holds_key(const Pair& s) { return s.key < kVacantFrom; }
  WARPHASH_FN static Item* bucket_of(void* slots, u64 bucket) {
    return static_cast<Item*>(slots) + bucket * 2 * kSlots;
  }
  WARPHASH_FN static Item* at(const Table& t, u32 bucket) {
    WARPHASH_ASSERT(bucket < t.buckets + Base::kReservedBuckets);
    return bucket_of(reinterpret_cast<void*>(t.slots), bucket);
  }
  WARPHASH_FN static Word* value_of(Item* slot) { return &(slot + kSlots)->key; }
  WARPHASH_FN static Word value_seen(const Item* slot, const Item&) { return load_slot<true>(slot + kSlots).key; }
  WARPHASH_FN static Pair load(const Item* slot) {
    return {load_slot<false>(slot).key, load_slot<false>(slot + kSlots).key};
  }
  WARPHASH_FN static void put(Item* slot, const Pair& pair) {
    slot->key = pair.key;
    *value_of(slot) = pair.value;
  }
  WARPHASH_FN static bool occupy(Item* slot, const Pair& pair, bool combined = false) {
    WARPHASH_ASSERT(holds_key(pair));
    const Word first = combined ? Base::kBusy : pair.key;
    const Word old = compare_exchange_word(&slot->key, Base::kEmpty, first);
    if (old != Base::kEmpty && !(old == Base::kTombstone && compare_exchange_word(&slot->key, old, first) == old))
      return false;
    store_relaxed(value_of(slot), pair.value);
    if (combined) store_release(&slot->key, pair.key);
    return true;
  }
};

// The slots of a design for words of this kind.
template <bool kInColumns, class Word, bool kHasValue, int kSlots>
struct SlotsChosen {
  using type = Slots<Word, kHasValue, kSlots>;
};
template <class Word, int kSlots>
struct SlotsChosen<true, Word, true, kSlots> {
  using type = Columns<Word, kSlots>;
};

template <template <class> class D, class Word, bool kHasValue, int kSlots,
          class Plain = D<Slots<Word, kHasValue, kSlots>>>
constexpr bool kInColumns = kHasValue && sizeof(Word) == 8 && kSlots >= 16 && !Plain::kMovesKeys && !Plain::S::kLinked;

template <template <class> class D, class Word, bool kHasValue, int kSlots>
using TableOf = D<typename SlotsChosen<kInColumns<D, Word, kHasValue, kSlots>, Word, kHasValue, kSlots>::type>;

}  // namespace warphash
