// Locks of one bit each: 1 while a thread has the lock. BitLocks lie in an array of words of global memory. BlockLocks
// lie in memory that the threads of a block share.
//
// No thread waits for a lock: try_lock says at once whether it has it. The lanes of a warp run in turns, so a lane that
// waited could keep the lane that has the lock from its turn. A thread that needs two locks takes them in the order of
// their numbers; then of all threads that try again and again, some thread gets what it needs.
//
// BlockLocks are few: numbers that differ by a multiple of kBlockLocks have one lock. A thread must not take two such
// locks: it would be refused for ever.
//
// Memory order. try_lock acquires and unlock releases, at the scope of the device or of the block. So relaxed loads of
// the next thread that has the lock see the plain stores of the thread that had the lock before. Plain loads may be
// answered by the nearest cache, which another processor does not write through.
#pragma once
#include "platform/platform.cuh"

namespace warphash {

constexpr u32 kBlockLocks = 1u << 14;

template <bool kOfBlock>
struct LocksOfBits {
  u32* words;

  WARPHASH_FN bool try_lock(u32 number) const {
    const u32 bit = 1u << number % 32;
    return !(set(word_of(number), bit) & bit);
  }
  WARPHASH_FN void unlock(u32 number) const { keep(word_of(number), ~(1u << number % 32)); }

 private:
  WARPHASH_FN u32* word_of(u32 number) const { return words + (kOfBlock ? number % kBlockLocks : number) / 32; }

#if defined(__CUDA_ARCH__)
  WARPHASH_FN static u32 set(u32* at, u32 bit) {
    u32 old;
    if constexpr (kOfBlock)
      asm volatile("{\n .reg .u64 a;\n cvta.to.shared.u64 a, %1;\n atom.acquire.cta.shared.or.b32 %0, [a], %2;\n}"
                   : "=r"(old)
                   : "l"(at), "r"(bit)
                   : "memory");
    else
      asm volatile("atom.acquire.gpu.global.or.b32 %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(bit) : "memory");
    return old;
  }
  WARPHASH_FN static void keep(u32* at, u32 bits) {
    if constexpr (kOfBlock)
      asm volatile(
          "{\n .reg .u64 a;\n cvta.to.shared.u64 a, %0;\n red.release.cta.shared.and.b32 [a], %1;\n}" ::"l"(at),
          "r"(bits)
          : "memory");
    else
      asm volatile("red.release.gpu.global.and.b32 [%0], %1;" ::"l"(at), "r"(bits) : "memory");
  }
#else
  WARPHASH_FN static u32 set(u32* at, u32 bit) { return fetch_or(at, bit); }
  WARPHASH_FN static void keep(u32* at, u32 bits) { fetch_and(at, bits); }
#endif
};

using BitLocks = LocksOfBits<false>;
using BlockLocks = LocksOfBits<true>;

}  // namespace warphash
