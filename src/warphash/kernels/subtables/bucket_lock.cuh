// A bucket's lock: a word that is 1 while somebody changes the bucket.
//
// Protocol. try_lock swaps 0 for 1 and acquires: what the last owner wrote is seen. unlock stores 0 and releases: what this
// thread wrote is seen by the next owner. Nobody waits while it holds a lock, and nobody holds two, so none waits for ever.
//
// Who does not get a lock. Under `voter`, it goes back to its warp: the lanes vote on who has work, look at their buckets, its
// own among them again, and it asks once more. Under `spin` it asks until it has the lock, and its warp waits with it.
// Source: Dynamic Hash Tables on GPUs, section 4.2.
#pragma once
#include "platform/platform.cuh"
#include "subtables/abi.cuh"

namespace warphash {

WARPHASH_FN bool try_lock(const SubtableTable& t, u32* lock) {
  do {
    if (compare_exchange_acquire(lock, 0u, 1u) == 0) return true;
  } while (t.coordination == kSpin);
  return false;
}
WARPHASH_FN void unlock(u32* lock) {
  WARPHASH_ASSERT(*lock == 1);
  store_release(lock, 0u);
}

}  // namespace warphash
