// The platform of a CPU: a tile is one thread, a bucket is compared by SIMD, and a thread keeps many elements in flight
// so that their cache misses overlap (core/cpu/schedule.cuh).
//
// Compiled ahead of time, once per instruction set: the build renames the namespace for each, and the extension picks
// one when it is loaded. __AVX2__ is the only instruction set that changes a line here; AVX-512 bought nothing over it.
//
// Memory order. Slots and words are swapped by relaxed atomics, a 16-byte slot by cmpxchg16b (or the ldxp/stxp pair of
// 64-bit Arm). A bucket is read by plain vector loads while others may swap its slots: each aligned word of such a load
// is whole on every CPU this runs on, and a decision taken on it is confirmed by a swap of the whole slot. The threads
// of a bulk operation are joined before the next begins.
#pragma once
#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "platform/types.cuh"

#define WARPHASH_ASSERT(...) static_cast<void>(0)
#define WARPHASH_FN inline __attribute__((always_inline))

namespace warphash {

using Tallied = u64;

constexpr bool kPrefetches = true;

template <class T>
WARPHASH_FN T* in_global(T* p) {
  return p;
}

WARPHASH_FN u32 first_bit(u32 x) { return static_cast<u32>(__builtin_ctz(x)); }
WARPHASH_FN u32 bit_count(u32 x) { return static_cast<u32>(__builtin_popcount(x)); }
WARPHASH_FN u32 multiply_high(u32 a, u32 b) { return static_cast<u32>((static_cast<u64>(a) * b) >> 32); }
WARPHASH_FN u64 multiply_high(u64 a, u64 b) { return static_cast<u64>((static_cast<unsigned __int128>(a) * b) >> 64); }

template <class T>
WARPHASH_FN T load_once(const T* p) {
  return *p;
}
template <class T>
WARPHASH_FN void store_once(T* p, T x) {
  *p = x;
}

WARPHASH_FN void prefetch(const void* p) { __builtin_prefetch(p); }

// Memory of more bytes lies beyond the caches. Its lines are asked for in the second-level cache, which can wait for more
// of them: twice as many come in a second. Where lines come from a near cache, the first-level cache is faster by a
// tenth. (docs/performance/cpu.md)
constexpr u64 kNearBytes = 16 << 20;

// All lines from `p` on, of memory that is far away, or not.
template <int kBytes>
WARPHASH_FN void prefetch_bytes(const void* p, bool far) {
  for (int offset = 0; offset < kBytes; offset += 64) {
    const char* const line = static_cast<const char*>(p) + offset;
    far ? __builtin_prefetch(line, 0, 2) : __builtin_prefetch(line);
  }
}

constexpr auto kRelaxed = std::memory_order_relaxed;

template <class Word>
WARPHASH_FN Word load_relaxed(const Word* p) {
  return std::atomic_ref<Word>(*const_cast<Word*>(p)).load(kRelaxed);
}
WARPHASH_FN u32 load_kept(const u32* p) { return load_relaxed(p); }
template <class Word>
WARPHASH_FN void store_relaxed(Word* p, Word x) {
  std::atomic_ref<Word>(*p).store(x, kRelaxed);
}
template <class Word>
WARPHASH_FN Word compare_exchange_word(Word* p, Word expected, Word desired) {
  std::atomic_ref<Word>(*p).compare_exchange_strong(expected, desired, kRelaxed);
  return expected;
}
WARPHASH_FN u32 compare_exchange_acquire(u32* p, u32 expected, u32 desired) {
  std::atomic_ref<u32>(*p).compare_exchange_strong(expected, desired, std::memory_order_acquire, kRelaxed);
  return expected;
}
template <class Word>
WARPHASH_FN void store_release(Word* p, Word x) {
  std::atomic_ref<Word>(*p).store(x, std::memory_order_release);
}
WARPHASH_FN void acquire_fence() { std::atomic_thread_fence(std::memory_order_acquire); }
WARPHASH_FN void acquire_release_fence() { std::atomic_thread_fence(std::memory_order_acq_rel); }
template <class Word>
WARPHASH_FN Word fetch_add(Word* p, Word x) {
  return std::atomic_ref<Word>(*p).fetch_add(x, kRelaxed);
}
template <class Word>
WARPHASH_FN void atomic_add(Word* p, Word x) {
  std::atomic_ref<Word>(*p).fetch_add(x, kRelaxed);
}
template <class Word>
WARPHASH_FN Word fetch_or(Word* p, Word x) {
  return std::atomic_ref<Word>(*p).fetch_or(x, kRelaxed);
}
WARPHASH_FN u32 fetch_or_release(u32* p, u32 x) {
  return std::atomic_ref<u32>(*p).fetch_or(x, std::memory_order_release);
}
template <class Word>
WARPHASH_FN Word fetch_and(Word* p, Word x) {
  return std::atomic_ref<Word>(*p).fetch_and(x, kRelaxed);
}
template <class Word>
WARPHASH_FN void atomic_xor(Word* p, Word x) {
  std::atomic_ref<Word>(*p).fetch_xor(x, kRelaxed);
}
WARPHASH_FN void atomic_min(u32* p, u32 x) {
  std::atomic_ref<u32> word(*p);
  u32 seen = word.load(kRelaxed);
  while (seen > x && !word.compare_exchange_weak(seen, x, kRelaxed)) {
  }
}
WARPHASH_FN void atomic_add_float(u32* p, u32 x) {
  std::atomic_ref<float>(*reinterpret_cast<float*>(p)).fetch_add(__builtin_bit_cast(float, x), kRelaxed);
}
WARPHASH_FN void atomic_add_float(u64* p, u64 x) {
  std::atomic_ref<double>(*reinterpret_cast<double*>(p)).fetch_add(__builtin_bit_cast(double, x), kRelaxed);
}

template <int kBytes>
struct WholeOf;
template <>
struct WholeOf<4> {
  using type = u32;
};
template <>
struct WholeOf<8> {
  using type = u64;
};
template <>
struct WholeOf<16> {
  using type = unsigned __int128;
};

// GCC's older builtins: unlike std::atomic they swap 16 bytes in line, without a call into a library of locks.
template <class T>
WARPHASH_FN T compare_exchange(T* p, const T& expected, const T& desired) {
  using Whole = typename WholeOf<sizeof(T)>::type;
  return __builtin_bit_cast(
      T, __sync_val_compare_and_swap(reinterpret_cast<Whole*>(p), __builtin_bit_cast(Whole, expected),
                                     __builtin_bit_cast(Whole, desired)));
}

// 16 bytes are read word by word: key, value, key, until both reads of the key agree. A find that runs beside erases
// has no swap that would fail for a pair whose halves come from two moments. Acquire keeps the three reads in order; on
// x86 acquire costs nothing.
template <bool, class T>
WARPHASH_FN T load_slot(const T* p) {
  if constexpr (sizeof(T) == 16) {
    u64* halves = reinterpret_cast<u64*>(const_cast<T*>(p));
    for (;;) {
      const u64 key = std::atomic_ref<u64>(halves[0]).load(std::memory_order_acquire);
      const u64 value = std::atomic_ref<u64>(halves[1]).load(std::memory_order_acquire);
      if (load_relaxed(halves) == key) return __builtin_bit_cast(T, Halves{key, value});
    }
  } else {
    using Whole = typename WholeOf<sizeof(T)>::type;
    return __builtin_bit_cast(T, __atomic_load_n(reinterpret_cast<const Whole*>(p), __ATOMIC_RELAXED));
  }
}

template <class T>
WARPHASH_FN T exchange(T* p, const T& desired) {
  T old = load_slot<false>(p);
  for (;;) {
    const T seen = compare_exchange(p, old, desired);
    if (std::memcmp(&seen, &old, sizeof(T)) == 0) return old;
    old = seen;
  }
}

// ---- a bucket at once: bit j of a mask is slot j
struct SlotMasks {
  u32 hits;    // slots with the key
  u32 vacant;  // slots that a key may take, where asked for
};

// Both masks come from one read of each slot. With two reads, a key that is swapped in between them would be missed by
// the first read, and the second would find a later slot vacant: the key would be stored twice.
template <class S, bool kVacancy>
WARPHASH_FN SlotMasks survey_one_by_one(const typename S::Item* at, typename S::Word key) {
  SlotMasks masks = {0, 0};
  for (int j = 0; j < S::kDataSlots; ++j) {
    const typename S::Word there = load_relaxed(&at[j].key);
    masks.hits |= static_cast<u32>(there == key) << j;
    masks.vacant |= static_cast<u32>(there >= S::kVacantFrom) << j;
  }
  return masks;
}

#if defined(__AVX2__)
template <class Word>
WARPHASH_FN __m256i broadcast(Word x) {
  if constexpr (sizeof(Word) == 4)
    return _mm256_set1_epi32(static_cast<int>(x));
  else
    return _mm256_set1_epi64x(static_cast<i64>(x));
}

// Bit j: key j of the vector equals that of `wanted`.
template <class S>
WARPHASH_FN u32 equal_keys(__m256i slots, __m256i wanted) {
  u32 words;
  if constexpr (sizeof(typename S::Word) == 4)
    words = static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(slots, wanted))));
  else
    words = static_cast<u32>(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(slots, wanted))));
  return S::Item::kValued ? _pext_u32(words, 0x55) : words;  // keys are the even words
}

template <class S, bool kVacancy>
WARPHASH_FN SlotMasks survey(const typename S::Item* at, typename S::Word key) {
  using Word = typename S::Word;
  if constexpr (S::kLookBytes < 32) return survey_one_by_one<S, kVacancy>(at, key);
  constexpr int kPerVector = 32 / static_cast<int>(sizeof(typename S::Item));
  SlotMasks masks = {0, 0};
  for (int j = 0; j < S::kSlots; j += kPerVector) {
    __m256i slots = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + j));
    asm volatile(""
                 : "+x"(slots));  // keeps the vector: the compiler may not read memory again for the second comparison
    masks.hits |= equal_keys<S>(slots, broadcast(key)) << j;
    if constexpr (kVacancy) {
      // Empty and Tombstone differ in the lowest bit.
      const __m256i either = S::kVacantFrom != S::kEmpty ? _mm256_or_si256(slots, broadcast(Word(1))) : slots;
      masks.vacant |= equal_keys<S>(either, broadcast(S::kEmpty)) << j;
      if constexpr (S::kVacantFrom < S::kTombstone)  // a busy slot is to be tried, too
        masks.vacant |= equal_keys<S>(slots, broadcast(S::kVacantFrom)) << j;
    }
  }
  return masks;
}
#else
template <class S, bool kVacancy>
WARPHASH_FN SlotMasks survey(const typename S::Item* at, typename S::Word key) {
  return survey_one_by_one<S, kVacancy>(at, key);
}
#endif

// Whether one of the slots of a bucket has the key.
template <class S>
WARPHASH_FN bool holds(const typename S::Item* at, typename S::Word key) {
#if defined(__AVX2__)
  if constexpr (S::kLookBytes >= 32) {
    constexpr int kPerVector = 32 / static_cast<int>(sizeof(typename S::Item));
    constexpr bool kNarrow = sizeof(typename S::Word) == 4;
    __m256i any = _mm256_setzero_si256();
    for (int j = 0; j < S::kSlots; j += kPerVector) {
      const __m256i slots = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + j));
      const __m256i same =
          kNarrow ? _mm256_cmpeq_epi32(slots, broadcast(key)) : _mm256_cmpeq_epi64(slots, broadcast(key));
      any = _mm256_or_si256(any, same);
    }
    const int words =
        kNarrow ? _mm256_movemask_ps(_mm256_castsi256_ps(any)) : _mm256_movemask_pd(_mm256_castsi256_pd(any));
    return words & (S::Item::kValued ? 0x55 : 0xFF);  // keys are the even words
  }
#endif
  return survey_one_by_one<S, false>(at, key).hits;
}

// ---- a line of 64 bytes at once: bit j of a mask is field j
// Bit j: word j of those in a row from byte kFirst of a line on equals `wanted`.
template <class Word, int kFirst, int kWords>
WARPHASH_FN u32 equal_words(const void* line, Word wanted);
// Fields of kBytes bytes in a row, from byte kFirst of a line on.
template <int kFirst, int kBytes, int kFields>
struct FieldsOfLine;

#if defined(__AVX2__)
constexpr bool kComparesLines = true;

template <class Word, int kFirst, int kWords>
WARPHASH_FN u32 equal_words(const void* line, Word wanted) {
  constexpr int kPerVector = 32 / static_cast<int>(sizeof(Word)), kLast = 64 - 32;  // where the last vector begins
  u32 mask = 0;
  for (int j = 0; j < kWords; j += kPerVector) {
    const int at = kFirst + j * static_cast<int>(sizeof(Word)), from = at < kLast ? at : kLast;
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(line) + from));
    u32 equal;
    if constexpr (sizeof(Word) == 4)
      equal = static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(words, broadcast(wanted)))));
    else
      equal = static_cast<u32>(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(words, broadcast(wanted)))));
    mask |= equal << ((from - kFirst) / static_cast<int>(sizeof(Word)));
  }
  return mask & ((1u << kWords) - 1);
}

template <int kFirst, int kBytes, int kFields>
struct FieldsOfLine {
  static constexpr bool kWhole = kFirst + kBytes * kFields > 32;  // or half of the line
  using Mask = std::conditional_t<kWhole, u64, u32>;              // a bit a byte

  WARPHASH_FN static constexpr Mask first_bytes() {
    Mask mask = 0;
    for (int j = 0; j < kFields; ++j) mask |= static_cast<Mask>(1) << (kFirst + j * kBytes);
    return mask;
  }
  struct alignas(32) Bytes {
    u8 of_field[64];  // the byte of its field that each byte of the line is
  };
  WARPHASH_FN static constexpr Bytes bytes_of_fields() {
    Bytes bytes = {};
    for (int i = 0; i < 64; ++i) bytes.of_field[i] = static_cast<u8>((i + kBytes - kFirst % kBytes) % kBytes);
    return bytes;
  }
  static constexpr Bytes kBytesOfFields = bytes_of_fields();

  WARPHASH_FN static __m256i half(const void* line, int k) {
    return _mm256_load_si256(static_cast<const __m256i*>(line) + k);
  }
  template <class BytesOf>
  WARPHASH_FN static Mask of_halves(BytesOf&& bytes_of) {
    const Mask low = static_cast<u32>(_mm256_movemask_epi8(bytes_of(0)));
    if constexpr (kWhole)
      return low | static_cast<Mask>(static_cast<u32>(_mm256_movemask_epi8(bytes_of(1)))) << 32;
    else
      return low;
  }
  WARPHASH_FN static u32 of_first_bytes(Mask mask) {
    if constexpr (kWhole)
      return static_cast<u32>(_pext_u64(mask, first_bytes()));
    else
      return _pext_u32(mask, first_bytes());
  }

  // Bit j: field j equals `wanted`.
  WARPHASH_FN static u32 equal(const void* line, u64 wanted) {
    const __m256i each = _mm256_set1_epi64x(static_cast<i64>(wanted));
    const Mask same = of_halves(
        [&](int k) { return _mm256_cmpeq_epi8(half(line, k), _mm256_shuffle_epi8(each, half(&kBytesOfFields, k))); });
    Mask all = same;
    for (int k = 1; k < kBytes; ++k) all &= same >> k;
    return of_first_bytes(all);
  }
  // Bit j: field j has this bit of its first byte.
  WARPHASH_FN static u32 with_bit(const void* line, u32 bit) {
    return of_first_bytes(
        of_halves([&](int k) { return _mm256_slli_epi16(half(line, k), static_cast<int>(7 - bit)); }));
  }
};
#else
constexpr bool kComparesLines = false;
#endif

// A thread is a lane, a warp and a block of its own.
constexpr u32 kWarpLanes = 1;
WARPHASH_FN u32 ballot(bool p) { return p; }
template <class Word>
WARPHASH_FN Word shuffle(Word x, u32, int) {
  return x;
}
WARPHASH_FN u32 thread_in_block() { return 0; }
WARPHASH_FN u32 threads_in_block() { return 1; }
WARPHASH_FN void block_barrier() {}
WARPHASH_FN u32 lane() { return 0; }
WARPHASH_FN void release_to_host(u64* p, u64 x) { std::atomic_ref<u64>(*p).store(x, std::memory_order_release); }

// Writes an aligned line of 64 bytes past the caches, where the processor can. Others may see it behind end_streams()
// only.
WARPHASH_FN void stream_line(void* to, const void* from) {
#if defined(__AVX2__)
  for (int k = 0; k < 2; ++k)
    _mm256_stream_si256(static_cast<__m256i*>(to) + k, _mm256_load_si256(static_cast<const __m256i*>(from) + k));
#elif defined(__SSE2__)
  for (int k = 0; k < 4; ++k)
    _mm_stream_si128(static_cast<__m128i*>(to) + k, _mm_load_si128(static_cast<const __m128i*>(from) + k));
#else
  std::memcpy(to, from, 64);
#endif
}
WARPHASH_FN void end_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace warphash

#define WARPHASH_ENTRY(NAME, ...) {#NAME, &warphash::for_each_untyped<__VA_ARGS__>, warphash::kWalks<__VA_ARGS__>},
#define WARPHASH_BLOCK_ENTRY(NAME, ...)  // a call costs no launch here
