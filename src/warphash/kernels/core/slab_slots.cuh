// The slots of a slab: a bucket of 128 bytes that ends in a pointer to the next one.
//
// Layout (bytes)
//   4-byte keys     [ 30 keys           | auxiliary 4 | next 4 ]      4 + 4 bytes   [ 15 pairs | auxiliary 4 | next 4 ]
//   8-byte keys     [ 15 keys           | auxiliary 4 | next 4 ]      8 + 8 bytes   [ 7 pairs | unused 8 | auxiliary 4 | next 4 ]
//   `next` is always the last word of 32 bits: the address of a slab of the pool (core/slab_allocator.cuh), all ones at the
//   end of a list. The auxiliary word is not used.
// The seed has the two on the left and in the middle for 4 bytes (A Dynamic Hash Table for the GPU, section IV-A, S3-10);
// those for 8 bytes are ours.
//
// Numbers. Slabs below buckets + annex are the base slabs, one a bucket, in one array; the others are of the pool, by
// their address behind that.
//
// States of a slot: as core/slot.cuh has them, but an erased slot is never used again before the list is rebuilt. So
// the slots of a list fill in one order, two inserts of one key swap against the same slot, and one of them wins: with
// slots that are used again, a key is stored a second time in front of its first (S3-40, open in the authors' code).
#pragma once
#include "core/slab_allocator.cuh"

namespace warphash {

template <class S_>
struct SlabSlots : S_ {
  using typename S_::Item;
  using typename S_::Word;
  static constexpr int kDataSlots = S_::kSlots - (sizeof(Item) == 4 ? 2 : 1);
  static constexpr bool kLinked = true;
  static constexpr bool kReuses = false;
  static_assert(S_::kBucketBytes == kSlabBytes && S_::kAnnexBuckets == 1, "a slab is a bucket of 128 bytes");

  WARPHASH_FN static bool is_vacant(const Item& s) { return S_::is_empty(s); }
  WARPHASH_FN static u32 base_slabs(const Table& t) { return static_cast<u32>(t.buckets) + 1; }
  WARPHASH_FN static u32 number_of(const Table& t, u32 address) { return base_slabs(t) + address; }
  WARPHASH_FN static Item* at(const Table& t, u32 number) {
    if (number < base_slabs(t)) return S_::at(t, number);
    return static_cast<Item*>(slab_at(pool_of(t), number - base_slabs(t)));
  }
  WARPHASH_FN static u32* next_of(Item* slab) { return reinterpret_cast<u32*>(slab) + kSlabBytes / sizeof(u32) - 1; }
  // The same, from the slot that holds it.
  WARPHASH_FN static u32 next_in(const Item& last) {
    const Word word = S_::kHasValue ? last.payload() : last.key;
    return sizeof(Word) == 4 ? static_cast<u32>(word) : static_cast<u32>(static_cast<u64>(word) >> 32);
  }
  WARPHASH_FN static bool occupy(Item* slot, const Item& item) {
    return compare_exchange(slot, S_::empty(), item).key == S_::kEmpty;
  }
};

}  // namespace warphash
