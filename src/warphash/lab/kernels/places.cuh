// What the memory allows: random reads of as many bytes as a bucket has, with nothing of a hash table around them.
//
//   read            reads a random place of a Region, `n` times
//   read_and_swap   the same, and then a compare-and-swap into each place read
//   read_and_exchange   the same with an exchange, which always succeeds
//
// Layout. The places of a region lie behind each other, each aligned to its size. Place i of a launch is a
// mixture of the number i + `random`: uniform, and known long before the read, as a table's first bucket is.
//
// Why a schedule of its own. A ceiling that went through the schedules of core/ would share its losses, and hide them. This
// one keeps more reads in flight than a table can, since none waits for what another found:
//   GPU  the lanes of a group read 16 bytes each, side by side, of kUnrolled places before they look at any of them
//   CPU  a ring of places whose lines are prefetched; each read makes room for the next prefetch
//
// The words read are folded into one, which is stored if it is a value that it cannot have: else the reads would be
// dropped by the compiler. The caller fills the region with zeros, and a swap or exchange adds 1, in the lowest bits.
#pragma once
#include "abi.cuh"
#include "platform/platform.cuh"

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

}  // namespace warphash
