// Cuckoo hashing with buckets of one slot and four functions, as CUDPP has it (Better GPU Hash Tables, section VII:
// 1CHT). The bucketed table with b = 1: an eviction there exchanges with the bucket's only slot.
#pragma once
#include "designs/bucketed_cuckoo.cuh"

namespace warphash {

template <class S>
struct Cuckoo : BucketedCuckoo<S> {
  static_assert(S::kSlots == 1, "a bucket of the classic table is one slot");
};

}  // namespace warphash
