// The ceiling kernels: random reads of as many bytes as a bucket has, without a hash table. They measure how fast the
// memory could serve a table.
//
//   read                read a random place of a Region, `n` times
//   read_and_swap       the same, with a compare-and-swap into each place after its read
//   read_and_exchange   the same, with an exchange, which always succeeds
//
// Layout. The places of a region are contiguous, each aligned to its size. Read i of a launch goes to place
// place_of(i + `random`). These places are uniform, and known long before the read, like the first bucket of a key.
//
// Why a schedule of its own. A ceiling measured through the schedules of core/ would include their losses, and so hide
// them. These kernels keep more reads in flight than a table can, because no read depends on another:
//   GPU  each lane of a group reads 16 adjacent bytes of a place, in kUnrolled places before it uses any of them
//   CPU  a ring of places whose lines are prefetched; each read makes room for the next prefetch
//
// Without a use, the compiler would drop the reads. So the kernel folds the words into one, and stores that word if it
// has a value that it can never have. The caller fills the region with zeros; a swap or exchange adds 1 to the lowest
// bits.
#pragma once
#include "abi.cuh"
#include "platform/platform.cuh"

namespace warphash {

// Always false, but the compiler cannot know: an exclusive or of zeros and small numbers is never this constant. Every
// bit that was read takes part.
WARPHASH_FN bool never(u64 fold) { return static_cast<u32>(fold ^ fold >> 32) == 0x9e3779b9u; }

enum class Access { kRead, kSwap, kExchange };

// The write after the read of a word, if the access has one.
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

}  // namespace warphash
