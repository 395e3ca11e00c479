// A bucket's lock: a word that is 1 while somebody changes the bucket.
//
// Protocol. try_lock swaps 0 for 1 and acquires: this thread sees what the last owner wrote. unlock stores 0 and
// releases: the next owner sees what this thread wrote. No thread waits while it holds a lock, and none holds two, so
// none waits for ever.
//
// A lock that is taken is the caller's business. A lane that acts for its own key goes back to its warp: the lanes vote
// on who has work, and look at their buckets again; then the lane tries once more. Where a warp serves one key at a
// time, subtables/gpu/warp_insert.cuh says what follows.
#pragma once
#include "platform/platform.cuh"

namespace warphash {

WARPHASH_FN bool try_lock(u32* lock) { return compare_exchange_acquire(lock, 0u, 1u) == 0; }
WARPHASH_FN void unlock(u32* lock) {
  WARPHASH_ASSERT(*lock == 1);
  store_release(lock, 0u);
}

}  // namespace warphash
