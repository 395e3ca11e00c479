// The kernels of owners on a CPU.
#pragma once
#include "owners/cpu/order.cuh"
#include "owners/flag_bits.cuh"

#define WARPHASH_PLAIN_ENTRIES                                                                    \
  WARPHASH_ENTRY(shards, warphash::FindShards)                                                    \
  WARPHASH_ENTRY(sum_apart, warphash::SumApart)                                                   \
  WARPHASH_ENTRY(sum_owners, warphash::SumOwners)                                                 \
  WARPHASH_ENTRY(pack_flags, warphash::PackFlags)                                                 \
  WARPHASH_ENTRY(unpack_flags, warphash::UnpackFlags)                                             \
  WARPHASH_ENTRY(count, warphash::OverOwnerSegments<warphash::CountOwners, warphash::OwnerBatch>) \
  WARPHASH_ENTRY(move, warphash::OverOwnerSegments<warphash::MoveRows, warphash::OwnerMoveBatch>) \
  WARPHASH_ENTRY(restore, warphash::OverOwnerSegments<warphash::RestoreRows, warphash::OwnerMoveBatch>)
