// The kernels of owners on a GPU.
#pragma once
#include "owners/flag_bits.cuh"
#include "owners/gpu/order.cuh"

#define WARPHASH_OWNER_MOVES(NAME, COUNTERS, RESTORES)                                             \
  WARPHASH_ENTRY(NAME##1, warphash::MoveOwnedWords<warphash::COUNTERS, warphash::u8, RESTORES>)    \
  WARPHASH_ENTRY(NAME##2, warphash::MoveOwnedWords<warphash::COUNTERS, warphash::u16, RESTORES>)   \
  WARPHASH_ENTRY(NAME##4, warphash::MoveOwnedWords<warphash::COUNTERS, warphash::u32, RESTORES>)   \
  WARPHASH_ENTRY(NAME##8, warphash::MoveOwnedWords<warphash::COUNTERS, warphash::u64, RESTORES>)   \
  WARPHASH_ENTRY(NAME##16, warphash::MoveOwnedWords<warphash::COUNTERS, warphash::Quad, RESTORES>) \
  WARPHASH_ENTRY(NAME##_rows, warphash::MoveOwnedRows<warphash::COUNTERS, RESTORES>)

// By the bytes of a key, or of a row.
#define WARPHASH_OWNER_ENTRIES(MANY, COUNTERS)                                                     \
  WARPHASH_ENTRY(count_##MANY##4, warphash::CountOwnersOfWords<warphash::COUNTERS, warphash::u32>) \
  WARPHASH_ENTRY(count_##MANY##8, warphash::CountOwnersOfWords<warphash::COUNTERS, warphash::u64>) \
  WARPHASH_ENTRY(count_##MANY##_rows, warphash::CountOwnersOfRows<warphash::COUNTERS>)             \
  WARPHASH_OWNER_MOVES(move_##MANY, COUNTERS, false)                                               \
  WARPHASH_OWNER_MOVES(restore_##MANY, COUNTERS, true)

#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_ENTRY(shards, warphash::FindShards)        \
  WARPHASH_ENTRY(sum_apart, warphash::SumApart)       \
  WARPHASH_ENTRY(sum_owners, warphash::SumOwners)     \
  WARPHASH_ENTRY(pack_flags, warphash::PackFlags)     \
  WARPHASH_ENTRY(unpack_flags, warphash::UnpackFlags) \
  WARPHASH_OWNER_ENTRIES(few, FewCounters)            \
  WARPHASH_OWNER_ENTRIES(many, ManyCounters)
