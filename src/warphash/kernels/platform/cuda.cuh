// The platform of an NVIDIA GPU, for NVRTC: our own intrinsics and PTX, no header of CUDA (each would add seconds to a
// compilation that takes 0.2 s).
//
// Memory order. A slot is read and swapped whole, with .relaxed semantics at .gpu scope. A slot publishes only itself,
// and the end of a kernel makes its results visible to the next kernel. Loads of kernels that change the table (kFresh)
// are .relaxed, too. So a slot that is read after a failed swap is at least as new as that swap. Kernels that only read
// (kFrozen) use the read-only path.
//
// 16-byte slots. sm_90 and later have atom.cas.b128 and atom.exch.b128; below, and with WARPHASH_NO_CAS128 on any
// device, the slot's key word is its lock (platform/slot_lock.cuh).
#pragma once
#include "platform/types.cuh"

#define WARPHASH_ASSERT(...) static_cast<void>(0)
#define WARPHASH_FN __device__ __forceinline__
#if !defined(WARPHASH_NO_CAS128) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define WARPHASH_NO_CAS128
#endif

namespace warphash {

using Tallied = u32;

constexpr u32 kMostBlockThreads = 1024;
constexpr u32 kWarpLanes = 32;
#if defined(WARPHASH_NO_CAS128)
constexpr bool kSwaps16Bytes = false;
#else
constexpr bool kSwaps16Bytes = true;
#endif
constexpr bool kPrefetches = false;  // a warp that waits lets others go on
WARPHASH_FN void prefetch(const void*) {}
constexpr u32 kAllLanes = 0xffffffffu;

WARPHASH_FN u32 thread_in_block() { return threadIdx.x; }
WARPHASH_FN u32 threads_in_block() { return blockDim.x; }
WARPHASH_FN u64 threads_in_grid() { return static_cast<u64>(gridDim.x) * blockDim.x; }
WARPHASH_FN u64 thread_in_grid() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
WARPHASH_FN u32 lane() { return threadIdx.x & 31u; }
WARPHASH_FN u32 ballot(bool p) { return __ballot_sync(kAllLanes, p); }
WARPHASH_FN bool any(bool p) { return __any_sync(kAllLanes, p); }
WARPHASH_FN u32 shuffle(u32 x, u32 source, int width) { return __shfl_sync(kAllLanes, x, source, width); }
WARPHASH_FN u64 shuffle(u64 x, u32 source, int width) { return __shfl_sync(kAllLanes, x, source, width); }
WARPHASH_FN void warp_barrier() { __syncwarp(kAllLanes); }
WARPHASH_FN void block_barrier() { __syncthreads(); }
// Threads of a block whose kernel wants so many.
WARPHASH_FN constexpr u32 block_threads(u32 wanted) { return wanted; }
// Memory that a block shares, aligned to 16 bytes.
template <u64 kBytes>
WARPHASH_FN void* block_memory() {
  struct alignas(16) Memory {
    u8 bytes[kBytes];
  };
  __shared__ Memory memory;
  return &memory;
}
// A lane took part in a step of its warp, or was idle: counted where kernels are emulated.
WARPHASH_FN void count_round(bool) {}
WARPHASH_FN u32 first_bit(u32 x) { return static_cast<u32>(__ffs(static_cast<int>(x)) - 1); }
WARPHASH_FN u32 bit_count(u32 x) { return static_cast<u32>(__popc(x)); }
WARPHASH_FN u32 multiply_high(u32 a, u32 b) { return __umulhi(a, b); }
WARPHASH_FN u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }

// ---- loads of slots: 4, 8 or 16 bytes in one instruction
struct alignas(16) Quad {
  u32 w[4];
};

// kRestFollows: this lane next reads behind these bytes, in the same sectors, which the nearest cache keeps until then.
// Such a load is not a read-only one (.nc). The blocks of a kernel may be on the device before the kernel that wrote
// has ended (wait_for_turn), and the device does not promise that a read-only load sees what was written since.
template <bool kFrozen, bool kRestFollows = false>
WARPHASH_FN Quad load_16_bytes(const void* p) {
  if constexpr (kFrozen && kRestFollows) {
    Quad q;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(q.w[0]), "=r"(q.w[1]), "=r"(q.w[2]), "=r"(q.w[3])
                 : "l"(p));
    return q;
  } else if constexpr (kFrozen) {
    Quad q;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(q.w[0]), "=r"(q.w[1]), "=r"(q.w[2]), "=r"(q.w[3])
                 : "l"(p));
    return q;
  } else {  // each half is read in one access: a slot of 8 bytes is never torn
    Halves h;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2];" : "=l"(h.low), "=l"(h.high) : "l"(p) : "memory");
    return __builtin_bit_cast(Quad, h);
  }
}

#if !defined(WARPHASH_NO_CAS128)
// In one access, as the swap of 16 bytes is.
WARPHASH_FN Quad load_whole_16_bytes(const void* p) {
  Halves h;
  asm volatile("{\n .reg .b128 x;\n ld.relaxed.gpu.global.b128 x, [%2];\n mov.b128 {%0, %1}, x;\n}"
               : "=l"(h.low), "=l"(h.high)
               : "l"(p)
               : "memory");
  return __builtin_bit_cast(Quad, h);
}
#endif

#if defined(WARPHASH_NO_CAS128)  // platform/slot_lock.cuh
WARPHASH_FN Quad load_released(const void* p);
WARPHASH_FN Halves compare_exchange_halves(Halves* p, Halves expected, Halves desired);
WARPHASH_FN Halves exchange_halves(Halves* p, Halves desired);
#endif

// As many slots as 16 bytes hold.
template <bool kFrozen, class T>
WARPHASH_FN Quad load_quad(const T* p) {
  if constexpr (sizeof(T) == 16 && !kFrozen) {
#if defined(WARPHASH_NO_CAS128)
    return load_released(p);
#else
    return load_whole_16_bytes(p);
#endif
  }
  return load_16_bytes<kFrozen>(p);
}

template <bool kFrozen, class T>
WARPHASH_FN T load_slot(const T* p) {
  if constexpr (sizeof(T) == 16) {
    return __builtin_bit_cast(T, load_quad<kFrozen>(p));
  } else if constexpr (sizeof(T) == 8) {
    u64 x;
    if constexpr (kFrozen)
      asm volatile("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(x) : "l"(p));
    else
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(p) : "memory");
    return __builtin_bit_cast(T, x);
  } else {
    u32 x;
    if constexpr (kFrozen)
      asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(x) : "l"(p));
    else
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
    return __builtin_bit_cast(T, x);
  }
}

// Arrays of a batch are read and written once, so they bypass the caches.
template <class T>
WARPHASH_FN T load_once(const T* p) {
  if constexpr (sizeof(T) == 16)
    return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const uint4*>(p)));
  else
    return __ldcs(p);
}
template <class T>
WARPHASH_FN void store_once(T* p, T x) {
  __stcs(p, x);
}

// ---- one word
WARPHASH_FN u32 load_relaxed(const u32* p) { return load_slot<false>(p); }
WARPHASH_FN u64 load_relaxed(const u64* p) { return load_slot<false>(p); }
WARPHASH_FN Halves load_relaxed(const Halves* p) { return __builtin_bit_cast(Halves, load_16_bytes<false>(p)); }
WARPHASH_FN Halves load_near(const Halves* p) {
  Halves h;
  asm volatile("ld.relaxed.cta.global.v2.u64 {%0,%1}, [%2];" : "=l"(h.low), "=l"(h.high) : "l"(p) : "memory");
  return h;
}
WARPHASH_FN u32 load_kept(const u32* p) {
  u64 policy;
  u32 x;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("ld.relaxed.gpu.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(x) : "l"(p), "l"(policy) : "memory");
  return x;
}
WARPHASH_FN void store_relaxed(u32* p, u32 x) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
WARPHASH_FN void store_relaxed(u64* p, u64 x) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}
WARPHASH_FN void store_relaxed(Halves* p, Halves x) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1,%2};" ::"l"(p), "l"(x.low), "l"(x.high) : "memory");
}
WARPHASH_FN u32 compare_exchange_acquire(u32* p, u32 expected, u32 desired) {
  u32 old;
  asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(p), "r"(expected), "r"(desired)
               : "memory");
  return old;
}
WARPHASH_FN void store_release(u32* p, u32 x) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
WARPHASH_FN void store_release(u64* p, u64 x) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}
WARPHASH_FN void acquire_fence() { __threadfence(); }
WARPHASH_FN void acquire_release_fence() { __threadfence(); }
// A host that sees this word sees all that this thread wrote before.
WARPHASH_FN void release_to_host(u64* p, u64 x) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(x) : "memory");
}
// For an address that was chosen among several. If the compiler does not know that the address is global, an atomic
// takes three times as long (docs/performance/).
template <class Word>
WARPHASH_FN Word* in_global(Word* p) {
  __builtin_assume(__isGlobal(p));
  return p;
}
template <class Word>
WARPHASH_FN Word compare_exchange_word(Word* p, Word expected, Word desired) {
  return atomicCAS(p, expected, desired);
}
template <class Word>
WARPHASH_FN void atomic_add(Word* p, Word x) {
  atomicAdd(p, x);
}
template <class Word>
WARPHASH_FN Word fetch_add(Word* p, Word x) {
  return atomicAdd(p, x);
}
WARPHASH_FN void atomic_min(u32* p, u32 x) { atomicMin(p, x); }
WARPHASH_FN void atomic_add_float(u32* p, u32 x) {
  atomicAdd(reinterpret_cast<float*>(p), __builtin_bit_cast(float, x));
}
WARPHASH_FN void atomic_add_float(u64* p, u64 x) {
  atomicAdd(reinterpret_cast<double*>(p), __builtin_bit_cast(double, x));
}
template <class Word>
WARPHASH_FN Word fetch_or(Word* p, Word x) {
  return atomicOr(p, x);
}
WARPHASH_FN u32 fetch_or_release(u32* p, u32 x) {
  u32 old;
  asm volatile("atom.release.gpu.global.or.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(x) : "memory");
  return old;
}
template <class Word>
WARPHASH_FN Word fetch_and(Word* p, Word x) {
  return atomicAnd(p, x);
}
template <class Word>
WARPHASH_FN void atomic_xor(Word* p, Word x) {
  atomicXor(p, x);
}

// ---- a whole slot
#if defined(WARPHASH_NO_CAS128)
WARPHASH_FN u64 exchange_word(u64* p, u64 x) { return atomicExch(p, x); }
#else
WARPHASH_FN Halves compare_exchange_halves(Halves* p, Halves expected, Halves desired) {
  Halves old;
  asm volatile(
      "{\n .reg .b128 e, d, o;\n mov.b128 e, {%3, %4};\n mov.b128 d, {%5, %6};\n"
      " atom.relaxed.gpu.global.cas.b128 o, [%2], e, d;\n mov.b128 {%0, %1}, o;\n}"
      : "=l"(old.low), "=l"(old.high)
      : "l"(p), "l"(expected.low), "l"(expected.high), "l"(desired.low), "l"(desired.high)
      : "memory");
  return old;
}
WARPHASH_FN Halves exchange_halves(Halves* p, Halves desired) {
  Halves old;
  asm volatile(
      "{\n .reg .b128 d, o;\n mov.b128 d, {%3, %4};\n"
      " atom.relaxed.gpu.global.exch.b128 o, [%2], d;\n mov.b128 {%0, %1}, o;\n}"
      : "=l"(old.low), "=l"(old.high)
      : "l"(p), "l"(desired.low), "l"(desired.high)
      : "memory");
  return old;
}
#endif

template <class T>
WARPHASH_FN T compare_exchange(T* p, const T& expected, const T& desired) {
  if constexpr (sizeof(T) == 16)
    return __builtin_bit_cast(
        T, compare_exchange_halves(reinterpret_cast<Halves*>(p), __builtin_bit_cast(Halves, expected),
                                   __builtin_bit_cast(Halves, desired)));
  else if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(
        T, atomicCAS(reinterpret_cast<u64*>(p), __builtin_bit_cast(u64, expected), __builtin_bit_cast(u64, desired)));
  else
    return __builtin_bit_cast(
        T, atomicCAS(reinterpret_cast<u32*>(p), __builtin_bit_cast(u32, expected), __builtin_bit_cast(u32, desired)));
}

template <class T>
WARPHASH_FN T exchange(T* p, const T& desired) {
  if constexpr (sizeof(T) == 16)
    return __builtin_bit_cast(T, exchange_halves(reinterpret_cast<Halves*>(p), __builtin_bit_cast(Halves, desired)));
  else if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, atomicExch(reinterpret_cast<u64*>(p), __builtin_bit_cast(u64, desired)));
  else
    return __builtin_bit_cast(T, atomicExch(reinterpret_cast<u32*>(p), __builtin_bit_cast(u32, desired)));
}

}  // namespace warphash

namespace warphash {
// A grid may be launched while the grid before it in the stream still runs (runtime/cuda/program.py). So its blocks are
// on the device when the last blocks of the earlier grid end. They do nothing until then: the wait ends when all
// earlier grids have ended and what they wrote is visible. (Each of these has waited itself.) The next grid may start
// once all blocks of this one have started.
WARPHASH_FN void wait_for_turn() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n griddepcontrol.wait;" ::: "memory");
#endif
}

// The table and the batch that a kernel takes.
template <class Function>
struct ArgumentsOf;
template <class Table_, class Batch_>
struct ArgumentsOf<void(const Table_&, const Batch_&)> {
  using Table = Table_;
  using Batch = Batch_;
};
}  // namespace warphash

// Fields whose values the kernels of one table know when they are compiled: assignments to fields of `known`.
#if !defined(WARPHASH_CONSTANTS)
#define WARPHASH_CONSTANTS
#endif
#define WARPHASH_DEFINE_KERNEL(BOUNDS, NAME, ...)                        \
  extern "C" __global__ void __launch_bounds__ BOUNDS NAME(              \
      const warphash::ArgumentsOf<decltype(__VA_ARGS__)>::Table table,   \
      const warphash::ArgumentsOf<decltype(__VA_ARGS__)>::Batch batch) { \
    warphash::wait_for_turn();                                           \
    warphash::ArgumentsOf<decltype(__VA_ARGS__)>::Table known = table;   \
    WARPHASH_CONSTANTS                                                   \
    __VA_ARGS__(known, batch);                                           \
  }

// Which kernels a unit has: WARPHASH_KERNELS(NAME) is the macro that a kernel becomes. By default, all are defined. By
// WARPHASH_IF_NAMED a unit has those for which WARPHASH_NAMED_<name> is defined as `~, WARPHASH_DEFINE_KERNEL`. By
// WARPHASH_DECLARE_KERNEL all are there by name, and do nothing.
#if !defined(WARPHASH_KERNELS)
#define WARPHASH_KERNELS(NAME) WARPHASH_DEFINE_KERNEL
#endif
#define WARPHASH_DECLARE_KERNEL(BOUNDS, NAME, ...) \
  extern "C" __global__ void NAME() {}
#define WARPHASH_SKIP_KERNEL(BOUNDS, NAME, ...)
#define WARPHASH_SECOND(FIRST, SECOND, ...) SECOND
#define WARPHASH_SECOND_OF(...) WARPHASH_SECOND(__VA_ARGS__)
#define WARPHASH_IF_NAMED(NAME) WARPHASH_SECOND_OF(WARPHASH_NAMED_##NAME, WARPHASH_SKIP_KERNEL, ~)
#define WARPHASH_KERNEL(BOUNDS, NAME, ...) WARPHASH_KERNELS(NAME)(BOUNDS, NAME, __VA_ARGS__)
#define WARPHASH_ENTRY(NAME, ...)                                                                        \
  WARPHASH_KERNEL((warphash::most_threads<__VA_ARGS__>(), warphash::fewest_blocks<__VA_ARGS__>()), NAME, \
                  warphash::for_each<__VA_ARGS__>)
#define WARPHASH_BLOCK_ENTRY(NAME, ...) WARPHASH_KERNEL((warphash::kMostBlockThreads), NAME, __VA_ARGS__)
#define WARPHASH_BLOCK_SHARED __shared__
