// What a probe learns of a bucket. A design decides by this alone, so it never sees lanes, vectors or SIMD. The same
// few lines of a design serve a tile of GPU lanes that reads the bucket together, and a CPU thread that reads the
// bucket alone.
#pragma once
#include "core/slot.cuh"

namespace warphash {

template <class S>
struct BucketView {
  i32 hit;                // slot that holds the key, or -1
  i32 vacant;             // first vacant slot, or S::kSlots: with no erased key in the bucket, how many keys it holds
  bool open;              // slot `region` - 1 was never used, hence the first `region` slots were never all taken
  typename S::Item item;  // the slot that holds the key
  u32 next;               // of a node of a list: the address of the next one
  u32 hits;               // bit j: slot j holds the key; only for tasks that say kSeesAll

  // A bucket without the key and without room.
  WARPHASH_FN static BucketView full() { return {-1, S::kSlots, false, S::empty(), kNowhere, 0}; }
};

// Bit j of each mask: slot j of a bucket was never used; may take a key.
struct LineMasks {
  u32 empty, vacant;
};

}  // namespace warphash
