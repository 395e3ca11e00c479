// What kernels that write the pairs of a join are given (core/abi.cuh, joins/).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Rows that are written without a branch (joins/cpu/pairs.cuh).
constexpr u64 kRowsAtOnce = 4;

// The rows of each key, by the codes of keys.
struct RowLists {
  u64 offsets;  // u32 per code, and two more, the sum of all: where the rows of the key begin; 0: a code is its one row
  u64 size;     // how many codes there are
  u64 rows;     // an integer per row: those of a key together, ascending; and kRowsAtOnce of -1
  u64 row_bytes;  // of a row, and of a code: 4 or 8
};

// Elements with the codes of their keys, in chunks.
struct PairBatch : Launch {
  u64 codes;      // an integer per element; negative: no row has its key
  u64 keeps_all;  // 1: an element without a row has a pair, too
  u64 length;     // elements of a chunk, but for the last
  u64 sums;      // u64 per chunk: its pairs, and for emit_pairs the pairs of the chunks before; and one more: all pairs
  u64 out_left;  // an integer per pair: the element
  u64 out_right;  // an integer per pair: the row, or -1
  u64 out_bytes;  // of such an integer: 4 or 8
};

// The same on a GPU, whose codes have 4 bytes: each pair has a place (core/gpu/owners/owners.cuh).
struct TilePairBatch : PairBatch {
  u64 counts;    // count_pairs: u32 per element: its pairs
  u64 starts;    // u64 per element, and one more: the pairs of the elements before
  u64 elements;  // tiles, emit_pairs: how many elements there are
  u64 firsts;    // u64 per tile of kOwnerTile pairs: the element of its first pair
};

// Words to add to a filter, or to look for those that may be there (joins/cpu/filter.cuh).
struct FilterBatch : Launch {
  u64 keys;          // packed words
  u64 key_bytes;     // of a word: 4 or 8
  u64 cells;         // u64 per cell of the filter, 0 at first
  u64 size;          // how many cells there are
  u64 salt;          // of the hashes of words
  u64 listed;        // list_likely: u32 per element: room for the lists of chunks
  u64 listed_words;  // the same for words
  u64 sums;  // u64 per chunk: its likely words, and for gather_likely those of the chunks before; and one more: all
  u64 out_elements;  // u32 per likely word: its element
  u64 out_words;     // the likely words
};

}  // namespace warphash
