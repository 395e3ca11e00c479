// The sketch of rows.cuh on a GPU.
//
//   sketch   rows -> registers that tell how many different rows there are
//
// Protocol. A block has registers of its own, in memory that its threads share. It enters its rows there, by atomic
// operations, and then raises the registers of the batch to its own.
//
// Why. Mostly a row is read, and no register has to rise. But to ask registers of the batch takes an access of the
// second-level cache for each row: 50 million keys took 0.72 ms so (H200).
//
// Layout of the memory of a block: 2^13 registers, u32.
//
// Memory order. Relaxed: a register publishes nothing, and only rises. Barriers order the two steps of a block.
#pragma once
#include "core/fingerprint.cuh"
#include "core/straight.cuh"
#include "rows/abi.cuh"

namespace warphash {

constexpr u32 kSketchBits = 13;

struct SketchInBlocks {
  using Table = StoredRows;
  using Batch = FingerprintBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 1024, kRegisters = 1u << kSketchBits;

  WARPHASH_FN static void run(const StoredRows&, const FingerprintBatch& b) {
    u32* const own = static_cast<u32*>(block_memory<4 * kRegisters>());
    for (u32 k = thread_in_block(); k < kRegisters; k += threads_in_block()) own[k] = 0;
    block_barrier();
    for (u64 i = thread_in_grid(); i < b.n; i += threads_in_grid()) {
      const u64 print = print_of(b, i);
      const u32 rest = static_cast<u32>(print >> 32);
      u32* const at = own + (print & (kRegisters - 1));
      raise(at, *const_cast<const volatile u32*>(at), rest ? first_bit(rest) + 1 : 33);
    }
    block_barrier();
    for (u32 k = thread_in_block(); k < kRegisters; k += threads_in_block()) {
      u32* const at = in_global(reinterpret_cast<u32*>(b.registers) + k);
      if (own[k]) raise(at, load_relaxed(at), own[k]);
    }
  }

 private:
  // Rows that are words are read whole.
  WARPHASH_FN static u64 print_of(const FingerprintBatch& b, u64 i) {
    if (b.row_bytes == 4) return mix(load_once(reinterpret_cast<const u32*>(b.rows) + i) ^ b.salt);
    if (b.row_bytes == 8) return mix(load_once(reinterpret_cast<const u64*>(b.rows) + i) ^ b.salt);
    return fingerprint_of(reinterpret_cast<const u8*>(b.rows) + i * b.row_bytes, b.row_bytes, b.salt);
  }
  WARPHASH_FN static void raise(u32* at, u32 seen, u32 to) {
    while (seen < to) {
      const u32 before = compare_exchange_word(at, seen, to);
      if (before == seen) return;
      seen = before;
    }
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES WARPHASH_ENTRY(sketch, warphash::SketchInBlocks)
