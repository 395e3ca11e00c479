// What the memory allows: random reads of as many bytes as a bucket has, with nothing of a hash table around them.
//
//   read            reads `kind` contiguous bytes at a random place, aligned to `kind`, `n` times
//   read_and_swap   the same, and then a compare-and-swap into each place read
//   read_and_exchange   the same with an exchange, which always succeeds
//
// Layout. The region is `buckets` places of `kind` bytes (4 to 512, a power of two) at `slots`. Place i of a launch is a
// mixture of the number i + `random`: uniform, and known long before the read, as a table's first bucket is.
//
// Why a schedule of its own. A ceiling that went through core/schedule_*.cuh would share its losses, and hide them. This
// one keeps more reads in flight than a table can, since none waits for what another found:
//   GPU  the lanes of a group read 16 bytes each, side by side, of kUnrolled places before they look at any of them
//   CPU  a ring of places whose lines are prefetched; each read makes room for the next prefetch
// So this header knows its platform, as only platform/ does otherwise.
//
// The words read are folded into one, which is stored if it is a value that it cannot have: else the reads would be
// dropped by the compiler. The caller fills the region with zeros, and a swap or exchange adds 1, in the lowest bits.
#pragma once
#include "core/abi.cuh"
#include "platform/schedule.cuh"

namespace warphash {

// An exclusive or of zeros and small numbers is not the number told here; every bit read takes part in it.
WARPHASH_FN bool never(u64 fold) { return static_cast<u32>(fold ^ fold >> 32) == 0x9e3779b9u; }

enum class Access { kRead, kSwap, kExchange };

// What comes behind the read of a word.
template <Access kAccess, class Word>
WARPHASH_FN void write([[maybe_unused]] Word* at, [[maybe_unused]] Word seen) {
  if constexpr (kAccess == Access::kSwap) compare_exchange_word(at, seen, static_cast<Word>(seen + 1));
  if constexpr (kAccess == Access::kExchange) exchange(at, static_cast<Word>(seen + 1));
}

// The finalizer of MurmurHash3: a bijection of 32-bit numbers.
WARPHASH_FN u32 place_of(u32 number, u32 places) {
  u32 x = number;
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return multiply_high(x, places);
}

#if defined(WARPHASH_CUDA) || defined(WARPHASH_EMULATED)

// Four reads of a lane are under way at once; sixteen a lane make the start of a block cheap beside its work. The product
// is lab/ceilings.py's _GATHERS_PER_GROUP, which sizes the launch.
constexpr u32 kUnrolled = 4, kRounds = 4;

template <int kBytes>
struct VectorOf {
  using type = Quad;
};
template <>
struct VectorOf<8> {
  using type = u64;
};
template <>
struct VectorOf<4> {
  using type = u32;
};

template <bool kFrozen>
WARPHASH_FN Quad load_vector(const Quad* p) {
  return load_16_bytes<kFrozen>(p);  // not load_slot: without 128-bit swaps that one waits for a slot's lock
}
template <bool kFrozen, class Word>
WARPHASH_FN Word load_vector(const Word* p) {
  return load_slot<kFrozen>(p);
}
WARPHASH_FN u64 low_word(const Quad& q) { return static_cast<u64>(q.w[1]) << 32 | q.w[0]; }
WARPHASH_FN u64 low_word(u64 x) { return x; }
WARPHASH_FN u32 low_word(u32 x) { return x; }
WARPHASH_FN u64 folded(const Quad& q) { return low_word(q) ^ (static_cast<u64>(q.w[3]) << 32 | q.w[2]); }
WARPHASH_FN u64 folded(u64 x) { return x; }

template <int kBytes, Access kAccess>
WARPHASH_FN void walk(const Table& t, const Batch& b) {
  using Vector = typename VectorOf<(kBytes < 16 ? kBytes : 16)>::type;
  using Word = decltype(low_word(Vector()));
  constexpr u32 kLanes = kBytes / sizeof(Vector);
  const u64 first = thread_in_grid() / kLanes * (kUnrolled * kRounds);
  const u32 rank = lane() % kLanes;
  if (first >= b.n) return;
  Vector* const base = reinterpret_cast<Vector*>(t.slots) + rank;
  const u32 places = static_cast<u32>(t.buckets);
  u32 number = static_cast<u32>(first + b.random);
  u64 fold = 0;
#pragma unroll 1
  for (u32 round = 0; round < kRounds; ++round) {
    Vector* at[kUnrolled];
    Vector read[kUnrolled];
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) at[j] = base + static_cast<u64>(place_of(number + j, places)) * kLanes;
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) read[j] = load_vector<kAccess == Access::kRead>(at[j]);
#pragma unroll
    for (u32 j = 0; j < kUnrolled; ++j) {
      fold ^= folded(read[j]);
      if (rank == j % kLanes) write<kAccess>(reinterpret_cast<Word*>(at[j]), low_word(read[j]));
    }
    number += kUnrolled;
  }
  if (never(fold)) store_once(reinterpret_cast<u32*>(t.slots), 0u);
}

#else

// Of 64 bytes. With 32, places of 512 bytes were read 7 % slower on an EPYC; with 256, no faster.
constexpr int kLinesAhead = 64;

template <int kBytes, Access kAccess>
inline void walk(const Table& t, const Batch& b, u64 begin, u64 end) {
  using Word = typename WholeOf<kBytes == 4 ? 4 : 8>::type;
  constexpr int kLines = kBytes < 64 ? 1 : kBytes / 64;
  constexpr u64 kAhead = kLinesAhead / kLines;
  constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  Word* ring[kAhead];
  u32 number = static_cast<u32>(begin + b.random);
  const auto board = [&](u64 slot) {
    ring[slot] = reinterpret_cast<Word*>(t.slots) + u64{place_of(number++, static_cast<u32>(t.buckets))} * kWords;
    for (int line = 0; line < kLines; ++line) prefetch(reinterpret_cast<const char*>(ring[slot]) + 64 * line);
  };
  for (u64 slot = 0; slot < kAhead; ++slot) board(slot);
  u64 fold = 0;
  for (u64 i = begin; i < end; ++i) {
    Word* const at = ring[(i - begin) % kAhead];
    for (int j = 0; j < kWords; ++j) fold ^= at[j];
    if constexpr (kAccess != Access::kRead) write<kAccess>(at, load_relaxed(at));
    board((i - begin) % kAhead);  // behind the end, too: nobody reads those
  }
  if (never(fold)) store_relaxed(reinterpret_cast<u32*>(t.slots), 0u);
}

#endif

template <Access kAccess>
struct Gathers {
  static constexpr bool kWalks = true, kCounts = false;
  template <class... Range>
  WARPHASH_FN static void run(const Table& t, const Batch& b, Range... range) {
    switch (b.kind) {
      case 4:
        return walk<4, kAccess>(t, b, range...);
      case 8:
        return walk<8, kAccess>(t, b, range...);
      case 16:
        return walk<16, kAccess>(t, b, range...);
      case 32:
        return walk<32, kAccess>(t, b, range...);
      case 64:
        return walk<64, kAccess>(t, b, range...);
      case 128:
        return walk<128, kAccess>(t, b, range...);
      case 256:
        return walk<256, kAccess>(t, b, range...);
      case 512:
        return walk<512, kAccess>(t, b, range...);
    }
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                              \
  WARPHASH_ENTRY(read, warphash::Gathers<warphash::Access::kRead>)          \
  WARPHASH_ENTRY(read_and_swap, warphash::Gathers<warphash::Access::kSwap>) \
  WARPHASH_ENTRY(read_and_exchange, warphash::Gathers<warphash::Access::kExchange>)
