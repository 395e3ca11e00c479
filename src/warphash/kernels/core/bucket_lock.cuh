// A bucket's lock: a word that is 1 while somebody changes the bucket.
//
// Protocol. try_lock swaps 0 for 1 and acquires: what the last owner wrote is seen. unlock stores 0 and releases: what this
// thread wrote is seen by the next owner. Nobody waits while it holds a lock, and nobody holds two, so none waits for ever.
// The lanes of a tile read a bucket for the lane that has its lock: the barrier of their warp stands between.
//
// A task that says kLocks names the lock of its next step, or none, and its step is told whether it holds it: a schedule
// tries once a round. Which lanes try is the coordination (core/schedule_warp.cuh).
#pragma once
#include "platform/platform.cuh"

namespace warphash {

template <class Task>
constexpr bool kLocks = false;
template <class Task>
  requires(Task::kLocks)
constexpr bool kLocks<Task> = true;

WARPHASH_FN bool try_lock(u32* lock) { return compare_exchange_acquire(lock, 0u, 1u) == 0; }
WARPHASH_FN void unlock(u32* lock) { store_release(lock, 0u); }

}  // namespace warphash
