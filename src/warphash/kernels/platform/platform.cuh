// The one seam between the algorithms and what they run on. A translation unit names its platform and gets these words:
//
//   WARPHASH_FN                             marks a function that runs there
//   multiply_high(a, b)                     upper half of a product
//   compare_exchange, exchange              on a whole slot, relaxed, at device scope; the old slot comes back
//   compare_exchange_word, atomic_*         on one word of a slot, or of another array, relaxed
//   in_global(p)                            the same address, known to be of global memory
//   load_relaxed, store_relaxed             one word that others may change meanwhile; or two, each by itself
//   load_near                               load_relaxed of two words that the nearest cache may have as they were before
//   load_kept                               load_relaxed of a word that the cache is to keep when lines go through it
//   compare_exchange_acquire, store_release a lock: what its last owner wrote is seen by the next
//   acquire_fence, acquire_release_fence   order the accesses before and behind them, at device scope
//   release_to_host(p, word)                the host that sees the word sees all that this thread wrote before
//   WARPHASH_ENTRY(name, Task)              defines the entry point of a bulk operation, which is for_each<Task>(table,
//                                           batch) of the schedule (core/cpu, core/gpu)
//   warp_barrier()                          memory as the lanes of a warp left it before, where there are warps
//   WARPHASH_BLOCK_ENTRY(name, function)    the same for work of a single block, where there are blocks
//   load_once, store_once                   arrays of a batch, which pass through the caches
//   WARPHASH_ASSERT(condition)              a rule of ours, which the emulation checks and nothing else evaluates
//   WARPHASH_BLOCK_SHARED                   storage that a block shares
//   Tallied                                 the word in which a thread counts what its elements did
//   kSwaps16Bytes                           whether an atomic of the GPU swaps 16 bytes
//   kPrefetches                             whether what a step asks for with `prefetch` is there by the next step
//   malloc, free                            the platform's own heap for running threads
#pragma once
#include "platform/types.cuh"

namespace warphash {

// 16 bytes that may move at once.
struct alignas(16) Halves {
  u64 low, high;
};

}  // namespace warphash

#if defined(WARPHASH_CUDA)
#include "platform/cuda.cuh"
#elif defined(WARPHASH_EMULATED)
#include "platform/emulated.cuh"
#else
#include "platform/host.cuh"
#endif
#if !defined(WARPHASH_CUDA)
namespace warphash {

inline Halves load_relaxed(const Halves* p) { return {load_relaxed(&p->low), load_relaxed(&p->high)}; }
inline Halves load_near(const Halves* p) { return load_relaxed(p); }
inline void store_relaxed(Halves* p, Halves x) {
  store_relaxed(&p->low, x.low);
  store_relaxed(&p->high, x.high);
}

}  // namespace warphash
#endif
#if defined(WARPHASH_NO_CAS128)
#include "platform/slot_lock.cuh"
#endif
