// What kernels that number keys, or look them up among few, are given (core/abi.cuh, groups/).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Where an element looks for the first element of its key.
struct FirstsTable {
  u64 cells;      // u32 array, all ones at first
  u64 cell_mask;  // a power of two, minus one
  u64 salt;       // of the fingerprints of rows
};

// Where a word of a GPU looks for the first element of its key (groups/gpu/word_cells.cuh).
struct WordCells {
  u64 cells;       // 16 bytes each, all ones at first; one more than `cell_count`
  u64 cell_count;  // cells that words are hashed to, a multiple of 4
  u64 salt;        // of the hashes
  u64 numbers;     // rank_words: u32 per cell: the number of its key
};

// Keys, and the numbers that they get.
struct NumberBatch : Launch {
  u64 keys;          // packed rows
  u64 key_bytes;     // of a row
  u64 rows;          // words: u32 per key: its element; 0: keys lie in the order of elements
  u64 numbers;       // an integer per element; 0: they are not asked for
  u64 number_bytes;  // of such an integer: 4 or 8
  u64 firsts;        // u32 per key: its first element
  u64 counts;        // u32 per key: its elements; 0: they are not asked for
  u64 places;        // u32 per element: the cell of its key; 0: neither numbers nor counts are asked for
  u64 bits;          // u32 per 32 elements, 0 at first: a bit for each element, 1 for the first one of its key
  u64 starts;        // u32 per 32 elements: the ones before their bits
};

// Keys that a table lacks, and the numbers that they get there.
struct MissingBatch : Launch {
  u64 keys;         // packed rows: of all elements for pack_missing, of the missing ones for take_firsts
  u64 key_bytes;    // of a row
  u64 out_keys;     // pack_missing, take_firsts: packed rows of the missing elements, of the new keys; 0: not asked for
  u64 found;        // u8 per element: 1 if the table has its key; 0: all are missing
  u64 starts;       // u64 per element: those that `found` marks before it; 0: all are missing
  u64 numbers;      // answer_missing: u32 per missing element: which new key it has
  u64 firsts;       // take_firsts, answer_missing: u32 per new key: its first missing element
  u64 out_numbers;  // take_firsts: the number of each new key
  u64 answers;      // answer_missing: the number of each element; those of missing ones are written
  u64 added;        // answer_missing: u8 per element: 1 if it adds its key; 0: they are not asked for
  u64 number_bytes;  // of a number in `out_numbers` and `answers`: 1, 2, 4 or 8
  u64 base;          // the number of the first new key, modulo 2^64
};

// A batch in chunks of elements, each of which a thread numbers by itself.
struct Chunks {
  u64 length;  // elements of a chunk, but for the last
  u64 count;   // of chunks
  u64 salt;    // of the hashes of words
};

// Words, and the numbers that the keys of each chunk get. `keys` are words of 4 or 8 bytes.
struct ChunkBatch : NumberBatch {
  u64 low;              // the least key, if a key is its own place
  u64 range;            // and how many places there are; 0: keys are hashed
  u64 key_places;       // range + 1 of u32 for each chunk, 0 at first: numbers + 1
  u64 expected;         // keys of a chunk
  u64 sizes;            // u32 per chunk: its keys; and one more: all keys
  u64 map;              // u32: the numbers of the keys of all chunks, in the order of chunks
  u64 bases;            // u32 per chunk: where its numbers begin in `map`
  u64 renumbered_from;  // the first element whose number goes through `map`
};

// Words that are brought to parts by their hashes.
struct PartBatch : ChunkBatch {
  u64 part_bits;  // logarithm of the number of parts, at most kMostPartBits
  u64 parts;      // u16 per element
  u64 places_of;  // u32 per chunk and part: its elements, and later where these begin in `brought`
  u64 begins;     // u32 per part, and one more: where its elements begin
  u64 brought;    // words in the order of parts; later the codes of these elements, u32, from where their words began
  u64 seen;       // u32 per chunk and part: the keys of the part in the chunks before
  u64 distinct;   // u32 per part: its keys
  u64 firsts_of;  // u32 per part: the keys of the parts before
  u64 tallies;    // u32 per element: of each key of a part, its elements, from where the part begins
};

// Rows of a batch that are brought to the parts of their keys, and then to their keys.
struct GroupBatch : PartBatch {
  u64 rows_brought;  // in the order of parts
  u64 row_bytes;     // of a row: 4 or 8
  u64 out_rows;      // those of a key together, in the order of the batch
  u64 offsets;       // u64 per key: where its rows begin
};

// A part has a line in the memory of a thread that writes to it.
constexpr int kMostPartBits = 11;

// A column of integers, which are the digits of words (groups/cpu/pack.cuh).
struct KeyColumn {
  u64 integers;  // the first one
  u64 width;     // bytes of an integer: 1, 2, 4 or 8
  u64 stride;    // bytes from an integer to the next
  u64 low;       // the least integer
  u64 range;     // how many integers there are from the least to the greatest one
};

// Rows of columns, and a word for each row.
struct PackBatch : Launch {
  u64 columns;     // KeyColumn per column
  u64 arity;       // how many columns there are
  u64 bounds;      // bounds: u64 per chunk, column and kind of integer, signed and unsigned: the least and the greatest
  u64 words;       // pack: a word per row
  u64 word_bytes;  // of a word: 4 or 8
};

// Words of a small range that are members of a set.
struct Members {
  u64 marks;       // u8 per place, and one more: 1 for a member
  u64 low;         // the word of place 0
  u64 range;       // and how many places there are
  u64 word_bytes;  // 1, 2, 4 or 8
};

// Words to add, or to look up.
struct MemberBatch : Launch {
  u64 words;  // packed
  u64 flags;  // mark_members: u8 per element, 0 or 1
};

// Words of a small range that have codes.
struct KeyPlaces {
  u64 places;      // u32 per place, and one more: the code of the word, plus 1; 0: it has none
  u64 low;         // the word of place 0
  u64 range;       // and how many places there are
  u64 word_bytes;  // 1, 2, 4 or 8
};

// Words to give codes to, or to look up.
struct PlaceBatch : Launch {
  u64 words;       // packed
  u64 codes;       // an integer per element; find_places: -1 for a word without a code
  u64 code_bytes;  // of such an integer: 4 or 8
};

// The lists of values of groups, which are numbered densely (groups/value_lists.cuh).
struct ValueLists {
  u64 group_records;    // GroupRecord per group: how many values it has, and where
  u64 segment_records;  // SegmentRecord per segment: where its values lie, and the next segment; 0: there are none
  u64 row_bytes;        // of a value
};

// Elements with the groups of their keys.
struct ListBatch : Launch {
  u64 elements;       // tiles, emit: how many elements there are
  u64 numbers;        // u32 per element: its group
  u64 flags;          // u8 per element: 1 if its key has a group; 0: all have one
  u64 out_flags;      // u8 per element
  u64 out_values;     // packed rows
  u64 default_row;    // address of the value of an element without one
  u64 out_counts;     // u32 per element
  u64 offsets;        // u64 per element, and one more but for link: where its values begin; link: 0 if each has one
  u64 keys;           // packed rows, one per element; 0: they are not asked for
  u64 key_bytes;      // of such a row
  u64 out_keys;       // packed rows, one per value
  u64 values;         // link, relist: the address of the values of all new runs
  u64 counts;         // link, relist: u32 per new run: its length
  u64 needs;          // needs: u64 per element: a new group : 32, new segments : 32; name_new, link: those before it
  u64 first_segment;  // link: the number of the first new segment
  u64 segments;       // link: how many segments there are then
  u64 totals;         // link, relist: ListTotals of the lists
  u64 groups;         // link: how many groups there are then; name_new, count_up: the first number
  u64 new_numbers;    // name_new: u32 per new group: its number
  u64 begins;         // count, emit: u64 per element: the address of its first value, or its list; 0: not asked for
  u64 tile_elements;  // tiles, emit: u64 per tile of kOwnerTile values: the element of its first value
};

// Of the number of a segment.
constexpr int kSegmentBits = 31;

// What the lists hold. Kernels keep these counts, so that an interrupted host cannot lose them.
struct ListTotals {
  u64 groups;
  u64 segments;
};

// Elements to bring in the order of their numbers. A launch looks at one digit of each number (groups/order.cuh).
struct OrderBatch : Launch {
  u64 numbers;   // u32 per element
  u64 shift;     // the lowest bit of the digit
  u64 mask;      // as many ones as the digit has bits
  u64 counters;  // u32 per digit and chunk: its elements, then where these go
  u64 chunks;    // of the batch; on a GPU, tiles
};

// The same on a CPU: numbers stay where they are, and an order of the elements is made (groups/cpu/order.cuh).
struct ChunkOrderBatch : OrderBatch {
  u64 length;     // elements of a chunk, but for the last
  u64 order;      // u32 per element: which element comes there; 0: they come as they are
  u64 out_order;  // u32 per element: the same in their new order; 0: the rows go there instead
  u64 rows;       // packed rows of 4 or 8 bytes, one per element
  u64 row_bytes;  // of such a row
  u64 out_rows;   // packed rows, in the new order
};

// The same on a GPU: elements move with their numbers (groups/gpu/order.cuh).
struct TileOrderBatch : OrderBatch {
  u64 payloads;      // a row of 4 or 8 bytes per element; 0: u32, the number of the element in the batch
  u64 out_numbers;   // u32 per element: the numbers in their new order; 0: they are not asked for
  u64 out_payloads;  // the payloads in their new order
};

}  // namespace warphash
