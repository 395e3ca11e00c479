// Flags as bits, for messages between ranks.
//
// An answer of yes or no is a byte, 0 or 1, where tables write and read it. On its way, it is a bit.
//
// Layout. Bit k of byte i is the flag of row 8 i + k. An owner has the rows of a round as whole parts of runs, and then
// the tails of these: fewer than 128 rows of each rank, one tail behind the other. Bits of a tail begin at a whole byte:
//
//   flags   [ whole parts: 8 a row       | tail of rank 0 | tail of rank 1 | … ]
//   bits    [ whole parts: 1 a row       | tail of rank 0, 16 bytes | tail of rank 1, 16 bytes | … ]
//
// So a message of bits is whole bytes, and the bits of a tail follow those of its run where they arrive.
//
// Protocol. pack_flags: a thread makes one byte of 8 flags. unpack_flags: a thread makes 8 flags of one byte. Threads
// share no word of 8 flags, so nothing is atomic.
//
// Why a product. Flag k is bit 8 k of a word of 8 flags. The factor has bits 56 - 7 k. So flag k comes to bit 56 + k, no
// two products meet, and the highest byte has all flags.
#pragma once
#include "core/bulk.cuh"
#include "core/straight.cuh"
#include "owners/abi.cuh"

namespace warphash {

constexpr u64 kFlagOfEachByte = 0x0101010101010101ull;
constexpr u64 kBitOfEachByte = 0x8040201008040201ull;  // bit k of byte k
constexpr u64 kFlagsToTop = 0x0102040810204080ull;

WARPHASH_FN u8 bits_of_flags(u64 flags) { return static_cast<u8>((flags & kFlagOfEachByte) * kFlagsToTop >> 56); }

WARPHASH_FN u64 flags_of_bits(u8 bits) {
  const u64 set = bits * kFlagOfEachByte & kBitOfEachByte;
  return (set + 0x7f * kFlagOfEachByte) >> 7 & kFlagOfEachByte;  // the top bit of a byte is set if one of its bits was
}

// The flags of one rank's tail, from a byte of bits on.
WARPHASH_FN u64 flags_of_tail(const FlagBitsBatch& b, u64 rank, u64 byte) {
  u64 first = b.whole, flags = 0;
  for (u64 before = 0; before < rank; ++before) first += b.tails[before / 8] >> 8 * (before % 8) & 0xff;
  const u64 rows = b.tails[rank / 8] >> 8 * (rank % 8) & 0xff;
  const u8* const tail = pointer<const u8>(b.flags) + first;
  for (u64 row = 8 * byte; row < rows && row < 8 * byte + 8; ++row)
    flags |= static_cast<u64>(tail[row]) << 8 * (row % 8);
  return flags;
}

struct PackFlags : Straight<OwnerSegments, FlagBitsBatch> {
  WARPHASH_FN static bool start(const OwnerSegments&, const FlagBitsBatch& b, u64 i, State&) {
    const u64 whole = b.whole / 8, tail_bytes = kFlagRun / 8;
    const u64 flags = i < whole ? pointer<const u64>(b.flags)[i]
                                : flags_of_tail(b, (i - whole) / tail_bytes, (i - whole) % tail_bytes);
    pointer<u8>(b.bits)[i] = bits_of_flags(flags);
    return false;
  }
};

struct UnpackFlags : Straight<OwnerSegments, FlagBitsBatch> {
  WARPHASH_FN static bool start(const OwnerSegments&, const FlagBitsBatch& b, u64 i, State&) {
    pointer<u64>(b.flags)[i] = flags_of_bits(pointer<const u8>(b.bits)[i]);
    return false;
  }
};

}  // namespace warphash
