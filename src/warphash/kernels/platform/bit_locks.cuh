// Locks of one bit each, in an array of words of global memory: 1 while a thread has the lock.
//
// No thread waits for a lock: try_lock says at once whether it has it. The lanes of a warp run in turns, so a lane that
// waited could keep the lane that has the lock from its turn. A thread that needs two locks takes them in the order of
// their numbers; then of all threads that try again and again, some thread gets what it needs.
//
// Memory order. try_lock acquires and unlock releases, at the scope of the device: the plain stores of a thread that
// had the lock are seen by relaxed loads of the next one. Plain loads may be answered by the nearest cache, which
// another processor does not write through.
#pragma once
#include "platform/platform.cuh"

namespace warphash {

struct BitLocks {
  u32* words;

  WARPHASH_FN bool try_lock(u32 number) const {
    u32* const at = words + number / 32;
    const u32 bit = 1u << number % 32;
#if defined(__CUDA_ARCH__)
    u32 old;
    asm volatile("atom.acquire.gpu.global.or.b32 %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(bit) : "memory");
#else
    const u32 old = fetch_or(at, bit);
#endif
    return !(old & bit);
  }
  WARPHASH_FN void unlock(u32 number) const {
    u32* const at = words + number / 32;
    const u32 others = ~(1u << number % 32);
#if defined(__CUDA_ARCH__)
    asm volatile("red.release.gpu.global.and.b32 [%0], %1;" ::"l"(at), "r"(others) : "memory");
#else
    fetch_and(at, others);
#endif
  }
};

}  // namespace warphash
