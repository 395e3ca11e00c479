// What kernels that bring a batch into the order of the owners of its keys are given (core/abi.cuh, owners/).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Bits of a shard. The owners of shards are part of the format of checkpoints.
constexpr int kShardBits = 12;

// Owners of a batch, at most, and keys apart: both are noted as a byte.
constexpr int kMostOwners = 256;

// Keys that a batch has apart, at most: a lane of a warp has the place of each.
constexpr int kMostApart = 16;

// Rows at whose multiples the bits of flags begin (owners/flag_bits.cuh): 16 bytes of bits.
constexpr int kFlagRun = 128;

// A batch in segments, and where the elements of each segment go.
struct OwnerSegments {
  u64 elements;  // of the batch
  u64 ranks;     // how many owners there are
  u64 apart;     // how many keys are apart
  u64 length;    // elements of a segment, but for the last
  u64 segments;  // how many there are
  u64 starts;    // u32 per rank or key apart, and segment: its elements; later those in the segments before
  u64 sizes;     // u32 per rank: its rows, rounded up to whole `run_rows`; per key apart: 1 if it has elements
  u64 places;    // u32 per key apart: 256 * its rank + the place of its row in the rank's run
  u64 keys;      // u64 per key apart: its bytes, filled up with zeros
  u64 run_rows;  // the run of each rank begins at a multiple of so many rows
};

// Keys whose owners are asked for.
struct OwnerBatch : Launch {
  u64 keys;       // packed rows
  u64 key_bytes;  // of a row
  u64 key_word;   // bytes of the widest word by which all keys can be read: 1, 2, 4 or 8
  u64 shards;     // shards: u16 per element
  u64 owners;     // count: u8 per element: its rank, or the number of ranks and that of its key apart
  u64 counts;     // sum_owners: i64 per rank: its rows
};

// A column of a batch, to be moved by the owners of the elements.
struct OwnerMoveBatch : Launch {
  u64 owners;     // u8 per element
  u64 source;     // packed rows
  u64 target;     // packed rows, in the other order
  u64 row_bytes;  // of a row
  u64 row_word;   // bytes of the widest word by which all rows can be read and written: 1, 2, 4, 8 or 16
  u64 once;       // restore: whether only the first element of a key apart gets the row, and the others get zeros
};

// Flags, a byte for each row, and the same as bits.
struct FlagBitsBatch : Launch {
  u64 flags;                   // u8 per row, 0 or 1, at a multiple of 8 bytes
  u64 bits;                    // a bit per row
  u64 whole;                   // pack: rows before the tails, a multiple of 8
  u64 tails[kMostOwners / 8];  // pack: u8 per rank: the rows of its tail, less than 128
};

}  // namespace warphash
