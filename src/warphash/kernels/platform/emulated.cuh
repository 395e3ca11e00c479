// The platform of an NVIDIA GPU on one CPU thread: the words of cuda.cuh, on fibers (platform/fibers.cuh). Tests only.
//
// Where lanes may change: before every access to memory that other lanes may change. These are atomics, relaxed loads
// and stores, and loads of a kernel that changes the table (kFresh), so also between two vectors of one bucket. An
// access itself is whole, as on the device: 4 or 8 bytes, or 16 in a load of a vector and, with the atomics of sm_90,
// in a swap. Without these atomics (WARPHASH_NO_CAS128) the two words of a slot are written one by one, and lanes may
// change in between. Accesses to the arrays of a batch and to the memory that a block shares are plain, as on the
// device, and lanes do not change there: only the order of lanes between two meetings varies.
//
// An address that is not aligned as the device wants it ends the launch with a message.
#pragma once
#include "platform/fibers.cuh"
#include "platform/types.cuh"

#define WARPHASH_ASSERT(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) : warphash::emulation::fail("breaks the rule %s (%s)", #__VA_ARGS__, __func__))
#define WARPHASH_FN inline
#define WARPHASH_BLOCK_SHARED static __attribute__((section("warphash_shared")))

namespace warphash {

using Tallied = u32;

constexpr u32 kMostBlockThreads = emulation::kBlockLanes;
constexpr u32 kWarpLanes = emulation::kWarpLanes;
constexpr u64 kResidentLanes = emulation::kResidentBlocks * emulation::kBlockLanes;  // that run at once
#if defined(WARPHASH_NO_CAS128)
constexpr bool kSwaps16Bytes = false;
#else
constexpr bool kSwaps16Bytes = true;
#endif
constexpr bool kPrefetches = false;
inline void prefetch(const void*) {}

inline u32 lane() { return emulation::grid.lane; }
inline u32 thread_in_block() {
  return emulation::grid.warp % emulation::kWarpsPerBlock * emulation::kWarpLanes + emulation::grid.lane;
}
inline u32 threads_in_block() { return emulation::kBlockLanes; }
inline u64 threads_in_grid() { return emulation::grid.blocks * emulation::kBlockLanes; }
inline u64 thread_in_grid() {
  return emulation::grid.resident[emulation::grid.block].index * emulation::kBlockLanes + thread_in_block();
}

// ---- meetings
inline u32 ballot(bool p) { return emulation::meet_warp(emulation::Meeting::kBallot, p).nonzero; }
inline bool any(bool p) { return ballot(p) != 0; }
template <class Word>
inline Word shuffle(Word x, u32 source, int width) {
  const u32 within = static_cast<u32>(width) - 1;
  const u32 from = (lane() & ~within) | (source & within);
  return static_cast<Word>(emulation::meet_warp(emulation::Meeting::kShuffle, x).words[from]);
}
inline void warp_barrier() { ballot(true); }
inline void block_barrier() { emulation::meet_block(); }
constexpr u32 block_threads(u32) { return emulation::kBlockLanes; }
// Memory that a block shares, aligned to 16 bytes. (A variable in a template is not put into a section.)
template <u64 kBytes>
inline void* block_memory() {
  static_assert(kBytes <= emulation::kBlockMemoryBytes);
  return emulation::grid.resident[emulation::grid.block].memory;
}
inline void count_round(bool busy) { ++emulation::grid.lane_rounds[busy]; }

template <class T>
inline T* in_global(T* p) {
  return p;
}

inline u32 first_bit(u32 x) { return static_cast<u32>(__builtin_ffs(static_cast<int>(x)) - 1); }
inline u32 bit_count(u32 x) { return static_cast<u32>(__builtin_popcount(x)); }
inline u32 multiply_high(u32 a, u32 b) { return static_cast<u32>((static_cast<u64>(a) * b) >> 32); }
inline u64 multiply_high(u64 a, u64 b) { return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64); }

namespace emulation {

// `p` as the device would take it for one access of T.
template <class T>
inline T* aligned(T* p) {
  const u64 address = reinterpret_cast<u64>(p);
  if (address % sizeof(T))
    fail("accesses %llu bytes at %#llx, which is not aligned", static_cast<u64>(sizeof(T)), address);
  return p;
}

// An atomic on a word: others come before it or behind it.
template <class Word, class Change>
inline Word change(Word* p, Change to) {
  switch_point();
  const Word old = *aligned(p);
  *p = to(old);
  return old;
}

}  // namespace emulation

// ---- loads of slots
struct alignas(16) Quad {
  u32 w[4];
};

#if defined(WARPHASH_NO_CAS128)  // platform/slot_lock.cuh
inline Quad load_released(const void* p);
inline Halves compare_exchange_halves(Halves* p, Halves expected, Halves desired);
inline Halves exchange_halves(Halves* p, Halves desired);
#endif

namespace emulation {

template <bool kFrozen, class T>
inline T load(const T* p) {
  if constexpr (!kFrozen) switch_point();
  return *aligned(p);
}

}  // namespace emulation

template <bool kFrozen, bool = false>
inline Quad load_16_bytes(const void* p) {
  return emulation::load<kFrozen>(static_cast<const Quad*>(p));
}
template <bool kFrozen, class T>
inline Quad load_quad(const T* p) {
#if defined(WARPHASH_NO_CAS128)
  if constexpr (sizeof(T) == 16 && !kFrozen) return load_released(p);
#endif
  return load_16_bytes<kFrozen>(p);
}
template <bool kFrozen, class T>
inline T load_slot(const T* p) {
  if constexpr (sizeof(T) == 16)
    return __builtin_bit_cast(T, load_quad<kFrozen>(p));
  else
    return emulation::load<kFrozen>(p);
}

template <class T>
inline T load_once(const T* p) {
  return *emulation::aligned(p);
}
template <class T>
inline void store_once(T* p, T x) {
  *emulation::aligned(p) = x;
}

// ---- one word
template <class Word>
inline Word load_relaxed(const Word* p) {
  return load_slot<false>(p);
}
inline u32 load_kept(const u32* p) { return load_relaxed(p); }
template <class Word>
inline void store_relaxed(Word* p, Word x) {
  emulation::change(p, [&](Word) { return x; });
}
inline void release_to_host(u64* p, u64 x) { store_relaxed(p, x); }
template <class Word>
inline Word compare_exchange_word(Word* p, Word expected, Word desired) {
  return emulation::change(p, [&](Word old) { return old == expected ? desired : old; });
}
inline u32 compare_exchange_acquire(u32* p, u32 expected, u32 desired) {
  return compare_exchange_word(p, expected, desired);
}
template <class Word>
inline void store_release(Word* p, Word x) {
  store_relaxed(p, x);
}
inline void acquire_fence() {}
inline void acquire_release_fence() {}
template <class Word>
inline Word exchange_word(Word* p, Word x) {
  return emulation::change(p, [&](Word) { return x; });
}
template <class Word>
inline Word fetch_add(Word* p, Word x) {
  return emulation::change(p, [&](Word old) { return old + x; });
}
template <class Word>
inline void atomic_add(Word* p, Word x) {
  fetch_add(p, x);
}
template <class Word>
inline Word fetch_or(Word* p, Word x) {
  return emulation::change(p, [&](Word old) { return old | x; });
}
inline u32 fetch_or_release(u32* p, u32 x) { return fetch_or(p, x); }
template <class Word>
inline Word fetch_and(Word* p, Word x) {
  return emulation::change(p, [&](Word old) { return old & x; });
}
template <class Word>
inline void atomic_xor(Word* p, Word x) {
  emulation::change(p, [&](Word old) { return old ^ x; });
}
inline void atomic_min(u32* p, u32 x) {
  emulation::change(p, [&](u32 old) { return old < x ? old : x; });
}
inline void atomic_add_float(u32* p, u32 x) {
  emulation::change(p, [&](u32 old) {
    return __builtin_bit_cast(u32, __builtin_bit_cast(float, old) + __builtin_bit_cast(float, x));
  });
}
inline void atomic_add_float(u64* p, u64 x) {
  emulation::change(p, [&](u64 old) {
    return __builtin_bit_cast(u64, __builtin_bit_cast(double, old) + __builtin_bit_cast(double, x));
  });
}

// ---- a whole slot
#if !defined(WARPHASH_NO_CAS128)
inline Halves compare_exchange_halves(Halves* p, Halves expected, Halves desired) {
  return emulation::change(
      p, [&](Halves old) { return old.low == expected.low && old.high == expected.high ? desired : old; });
}
inline Halves exchange_halves(Halves* p, Halves desired) {
  return emulation::change(p, [&](Halves) { return desired; });
}
#endif

template <class T>
struct WordOf;  // by size of a slot
template <class T>
  requires(sizeof(T) == 4)
struct WordOf<T> {
  using type = u32;
};
template <class T>
  requires(sizeof(T) == 8)
struct WordOf<T> {
  using type = u64;
};

template <class T>
inline T compare_exchange(T* p, const T& expected, const T& desired) {
  if constexpr (sizeof(T) == 16) {
    return __builtin_bit_cast(
        T, compare_exchange_halves(reinterpret_cast<Halves*>(p), __builtin_bit_cast(Halves, expected),
                                   __builtin_bit_cast(Halves, desired)));
  } else {
    using Word = typename WordOf<T>::type;
    return __builtin_bit_cast(T, compare_exchange_word(reinterpret_cast<Word*>(p), __builtin_bit_cast(Word, expected),
                                                       __builtin_bit_cast(Word, desired)));
  }
}

template <class T>
inline T exchange(T* p, const T& desired) {
  if constexpr (sizeof(T) == 16) {
    return __builtin_bit_cast(T, exchange_halves(reinterpret_cast<Halves*>(p), __builtin_bit_cast(Halves, desired)));
  } else {
    using Word = typename WordOf<T>::type;
    return __builtin_bit_cast(T, exchange_word(reinterpret_cast<Word*>(p), __builtin_bit_cast(Word, desired)));
  }
}

}  // namespace warphash

namespace warphash::emulation {

// A kernel, called with the addresses of its table and its batch.
template <auto kFunction>
struct Kernel;
template <class Table, class Batch, void (*kFunction)(const Table&, const Batch&)>
struct Kernel<kFunction> {
  static void body(const void* table, const void* batch) {
    kFunction(*static_cast<const Table*>(table), *static_cast<const Batch*>(batch));
  }
  static const char* launch(const void* table, u64 table_bytes, const void* batch, u64 batch_bytes, u64 n, u64 seed) {
    if (table_bytes != sizeof(Table)) return "the kernel takes a table of another type";
    if (batch_bytes != sizeof(Batch)) return "the kernel takes a batch of another type";
    return emulation::launch(body, table, batch, n, seed);
  }
};

}  // namespace warphash::emulation

// warphash_NAME: runs the grid for n elements under the schedule of `seed`; null, or the message of what went wrong.
#define WARPHASH_KERNEL(NAME, MOST, ...)                                                                           \
  extern "C" __attribute__((visibility("default"))) const char* warphash_##NAME(                                   \
      const void* table, warphash::u64 table_bytes, const void* batch, warphash::u64 batch_bytes, warphash::u64 n, \
      warphash::u64 seed) {                                                                                        \
    return warphash::emulation::Kernel<&__VA_ARGS__>::launch(table, table_bytes, batch, batch_bytes,               \
                                                             n < MOST ? n : MOST, seed);                           \
  }
#define WARPHASH_ENTRY(NAME, ...)                                                             \
  WARPHASH_KERNEL(NAME, (warphash::kRefills<__VA_ARGS__> ? warphash::kResidentLanes : ~0ull), \
                  warphash::for_each<__VA_ARGS__>)
#define WARPHASH_BLOCK_ENTRY(NAME, ...) WARPHASH_KERNEL(NAME, ~0ull, __VA_ARGS__)
// How many lanes were idle, and how many were busy, in the steps of the last launch.
extern "C" __attribute__((visibility("default"), used)) inline const warphash::u64* warphash_lane_rounds() {
  return warphash::emulation::grid.lane_rounds;
}
// Where the last launch met memory that is not there; null if it did not.
extern "C" __attribute__((visibility("default"), used)) inline const warphash::u64* warphash_fault_address() {
  return warphash::emulation::grid.faulted ? &warphash::emulation::grid.fault_address : nullptr;
}
