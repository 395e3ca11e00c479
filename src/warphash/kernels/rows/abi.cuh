// What kernels on rows of bytes are given (core/abi.cuh, rows/rows.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Rows that a store keeps.
struct StoredRows {
  u64 rows;          // address of row 0
  u64 stored_bytes;  // of a row
};

// Rows of the caller, and stored rows.
struct RowBatch : Launch {
  u64 rows;              // packed rows, one per element
  u64 row_bytes;         // of a row
  u64 numbers;           // u64 per element: row number, rank or element, and two marks (rows/rows.cuh)
  u64 flags;             // Flag per element, u8
  u64 out_rows;          // gather: packed rows
  u64 default_row;       // gather: address of the row of an element without a flag
  u64 list;              // match, list_flagged: u32 list, its length in Report::winners
  u64 listed_flag;       // list_flagged: Flag of the elements that are listed
  u64 fingerprints;      // claim_rows, take_rows: u64 per element
  u64 cells;             // claim_rows: u64 array, all ones
  u64 cell_count;        // and its length
  u64 claims_found;      // claim_rows: 1: elements that were found claim, too
  u64 free_list;         // take_rows, free_rows: stack of row numbers, u64
  u64 free_rows;         // and how many are on the stack
  u64 end;               // take_rows: rows that were ever used
  u64 out_fingerprints;  // take_rows: u64 per chosen element, in the order of ranks
  u64 out_numbers;       // likewise, of its row
  u64 op;                // merge, share_rows: Op
  u64 kind;              // Kind of the operands
};

// Rows, and words or longer rows that hold them.
struct WordBatch : Launch {
  u64 rows;       // packed rows
  u64 row_bytes;  // of a row
  u64 words;
  u64 word_bytes;  // of a word
};

// A sample of rows: one for each element.
struct SampleBatch : Launch {
  u64 rows;       // packed rows
  u64 row_bytes;  // of a row
  u64 row_count;  // and how many there are
  u64 out_rows;   // packed rows of the sample
};

// Rows to fingerprints.
struct FingerprintBatch : Launch {
  u64 rows;          // packed rows
  u64 row_bytes;     // of a row
  u64 salt;          // of the fingerprints
  u64 fingerprints;  // u64 per element
  u64 registers;     // sketch: 2^kSketchBits of u32
};

// Counts or flags to their sums; an element is a chunk of kChunk of them.
struct CountBatch : Launch {
  u64 counts;        // array of u32 or u64
  u64 count_bytes;   // of a count: 4 or 8
  u64 of_bits;       // 1: a count is the number of ones in its u32
  u64 length;        // of the array
  u64 sums;          // u64 per chunk: of its counts
  u64 starts;        // u64 per chunk: the sum of all counts before it
  u64 offsets;       // per count: the sum of all counts before it
  u64 offset_bytes;  // of an offset: 4 or 8
  u64 flags;         // flag_sums, list_chunks: u8 array of so many flags
  u64 listed_flag;   // of the elements that are counted, and listed
  u64 list;          // list_chunks: u32 array
};

}  // namespace warphash
