// The slots of a list's nodes: a bucket that ends in a pointer to the next one. A node of 128 bytes is a slab.
//
// Layout (bytes)
//   slab   4-byte keys   [ 30 keys | auxiliary 4 | next 4 ]     4 + 4 bytes   [ 15 pairs | auxiliary 4 | next 4 ]
//          8-byte keys   [ 15 keys | auxiliary 4 | next 4 ]     8 + 8 bytes   [ 7 pairs | unused 8 | auxiliary 4 | next 4 ]
//   node   4-byte keys   [ key 4 | next 4 ]                     4 + 4 bytes   [ pair 8 | unused 4 | next 4 ]
//   of one 8-byte keys   [ key 8 | unused 4 | next 4 ]          8 + 8 bytes   [ pair 16 | unused 12 | next 4 ]
//   `next` is always the last word of 32 bits: the address of a unit of the pool (chains/slab_allocator.cuh), all ones at the
//   end of a list. The auxiliary word is not used.
// The slabs for 4 bytes are those of A Dynamic Hash Table for the GPU, section IV-B; those for 8 bytes are ours.
// The node of one key is that of its baseline, the list of Misra and Chaudhuri (section VI-C).
//
// Numbers. The numbers below buckets + reserved buckets are those of the base slabs, one a bucket, in one array. The slab
// of the pool at address a has the number a behind these.
//
// States of a slot: as in core/slot.cuh, but an erased slot is not used again before the list is rebuilt (a MultiMap may
// allow it: chains/reuse.cuh). So the slots
// of a list fill in one order. Two inserts of one key then swap against the same slot, and one of them wins. If slots
// were used again, a key could be stored a second time in front of its first copy (an open fault of the authors' code).
#pragma once
#include "chains/slab_allocator.cuh"

namespace warphash {

template <class S_>
struct SlabSlots : S_ {
  using Table = ChainTable;
  using typename S_::Item;
  using typename S_::Word;
  static constexpr int kDataSlots = S_::kSlots - (sizeof(Item) == 4 && S_::kSlots > 2 ? 2 : 1);
  static constexpr bool kLinked = true;
  static constexpr Word kVacantFrom = S_::kEmpty;  // an erased slot is not used again
  static_assert(kDataSlots == 1 || S_::kBucketBytes == kSlabBytes, "a node holds one key, or is a slab");

  WARPHASH_FN static bool is_vacant(const Item& s) { return S_::is_empty(s); }
  WARPHASH_FN static u32 base_slabs(const Table& t) { return static_cast<u32>(t.buckets) + S_::kReservedBuckets; }
  WARPHASH_FN static u32 number_of(const Table& t, u32 address) { return base_slabs(t) + address; }
  WARPHASH_FN static Item* at(const Table& t, u32 number) {
    if (number < base_slabs(t)) return S_::at(t, number);
    const u32 address = number - base_slabs(t);
    void* unit = t.pool_units ? unit_at(t.pool_units, address, S_::kBucketBytes)
                              : slab_at(pool_of(t), address, S_::kBucketBytes);
    return static_cast<Item*>(unit);
  }
  WARPHASH_FN static u32* next_of(Item* slab) {
    return reinterpret_cast<u32*>(slab) + S_::kBucketBytes / sizeof(u32) - 1;
  }
  // The address of the next node, from the slot that holds it.
  WARPHASH_FN static u32 next_in(const Item& last) {
    const Word word = S_::kHasValue ? last.payload() : last.key;
    return sizeof(Word) == 4 ? static_cast<u32>(word) : static_cast<u32>(static_cast<u64>(word) >> 32);
  }
  WARPHASH_FN static bool occupy(Item* slot, const Item& item) {
    WARPHASH_ASSERT(S_::holds_key(item));
    return compare_exchange(slot, S_::empty(), item).key == S_::kEmpty;
  }
};

}  // namespace warphash
