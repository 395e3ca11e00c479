// MegaKV: cuckoo hashing with two functions, buckets of eight slots, and at most two evictions for a key. Source: the
// baseline MegaKV of Dynamic Hash Tables on GPUs (section 6.1), as the authors of that paper revised it: one exchange
// of a slot and no lock on a bucket. That is the bucketed cuckoo table (designs/bucketed_cuckoo.cuh) with b = 8, h = 2
// and a chain_limit of two. The paper does not tell the limit. With two exchanges, the shares of keys that find no
// place are those of its Tables 4 to 8 (0.35, 0.73, 1.35, 2.36, 3.91 % at loads 0.75 to 0.95, where RAND has 0.42,
// 0.79, 1.4, 2.4, 3.9). At 0.75 one exchange would leave three times as many, and three exchanges a third.
//
// The paper drops those keys. Here they are displaced like any others, and the table is rebuilt or refuses the batch.
#pragma once
#include "designs/bucketed_cuckoo.cuh"

namespace warphash {

template <class S>
struct Megakv : BucketedCuckoo<S> {
  static_assert(S::kSlots == 8, "MegaKV has buckets of eight");
};

}  // namespace warphash
