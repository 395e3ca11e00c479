// What the kernels of bounded tables are given (core/abi.cuh, bounded/bounded.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// A count-min sketch of how often keys were accessed.
struct FrequencySketch {
  u64 counters;  // address of `lines` lines of 64 counters, u8
  u64 lines;
  u64 seed;  // of the fingerprints
};

// Keys that were accessed, or that are to be ranked.
struct AccessBatch : Launch {
  u64 keys;       // packed rows
  u64 key_bytes;  // of a row
  u64 flags;      // record: Flag per element, u8; an element takes part if its flag is kChanged. 0: all take part
  u64 out_ranks;  // u64 per element
};

// Ranks, u64: of the stored rows, or of the elements of a batch.
struct Ranks {
  u64 ranks;
};

// Stored rows whose ranks change.
struct TouchBatch : Launch {
  u64 numbers;  // u64 per element: a row number and two marks (rows/rows.cuh)
  u64 flags;    // Flag per element, u8
  u64 flag;     // Flag of the elements that take part
  u64 clock;    // rank of the rows, if there are no
  u64 given;    // ranks, u64 per element
  u64 renews;   // 1: a rank only rises
};

// Scores of the caller's; their ranks go to Ranks.
struct ScoreBatch : Launch {
  u64 rows;       // packed numbers
  u64 row_bytes;  // of a number
  u64 kind;       // Kind
};

// The search of the k least ranks, and the keys that have them.
struct SelectBatch : Launch {
  u64 length;        // histogram: ranks, of which each element counts some
  u64 histogram;     // histogram: kHistogramCopies arrays of u32
  u64 bins;          // of each array, a power of two
  u64 shift;         // histogram: a bin is the low bits of (rank >> shift)
  u64 prefix;        // histogram: ranks take part whose bits from
  u64 prefix_shift;  // on are `prefix`; 64: all ranks take part
  u64 last;          // choose: greatest rank that is chosen
  u64 ties;          // choose: so many of the elements of that rank are chosen
  u64 ticket;        // choose: address of a zeroed u64
  u64 keys;          // choose: packed rows, one per element
  u64 key_bytes;     // of a row
  u64 out_keys;      // choose: packed rows of the chosen elements
};

// Numbers that are compared with a bound, and the keys beside them.
struct CompareBatch : Launch {
  u64 rows;        // packed numbers, or ranks of numbers
  u64 row_bytes;   // of a number
  u64 kind;        // Kind of the numbers
  u64 ranked;      // 1: `rows` are ranks
  u64 comparison;  // Comparison
  u64 bound;       // rank of the bound
  u64 keys;        // packed rows, one per element
  u64 key_bytes;   // of a row
  u64 out_keys;    // packed rows of the keys whose numbers compare so; 0: these are only counted
};

}  // namespace warphash
