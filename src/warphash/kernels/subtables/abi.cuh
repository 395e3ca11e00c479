// What kernels on subtables are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Several subtables, each with a size of its own, and the routing of keys among them.
// The last element of an array of kMostSubtables + 1 is that of the reserved buckets (subtables/lines.cuh).
struct SubtableTable {
  u64 subtables;              // in use, 2 to kMostSubtables
  u64 family;                 // Family of the hash functions
  u64 digest_point;           // constant of the digests of wide keys (core/wide.cuh)
  u64 salts[kMostSubtables];  // constants of the hash function of subtable i: this one,
  u64 addend[kMaxHashes];     // and addend i mod kMaxHashes
  u64 routing_salt;           // of the hash that draws the first subtable of a key
  u64 chain_limit;            // evictions before a key is given up
  u64 early_exit;             // 1: find stops at a first bucket that was never full
  u64 coordination;           // Coordination
  u64 value_bytes;            // of a value where it is no word, a multiple of 4
  u64 bases[kMostSubtables + 1];
  u64 sizes[kMostSubtables + 1];         // buckets
  u64 bucket_words[kMostSubtables + 1];  // address of the locks of a subtable, which its overflow filter follows
  u64 route_ends[kMostSubtables];        // routing: of 2^32 draws, where those of subtable i end
  u64 least_begins[kMostSubtables];  // where they began at the least, since the overflow filter of i was written anew,
  u64 most_ends[kMostSubtables];     // and ended at the most
};

// How the lanes of a warp put keys: each its own (subtables/insert.cuh), or all of them one key at a time
// (subtables/gpu/warp_insert.cuh).
enum Coordination : u64 { kLanes = 0, kVoter = 1, kSpin = 2 };

// An operation on subtables.
struct SubtableBatch : InsertBatch {
  u64 displaced_values;  // values of the pairs in `displaced`
  u64 spare_values;      // place: a value's room for each element, where values are no words
  u64 unique;            // settle: 1: the caller vouches that keys do not repeat, and are not in the table
  u64 adopts;            // place: 1: elements that find no slot become displaced, too
  u64 closed;            // place: the subtable, plus one, that nothing is placed in
  u64 subtable;          // enlarge, halve, scan, audit: its number
  u64 source_lines;      // enlarge, halve: address of its old copy
  u64 source_buckets;    // and how many buckets that has
  u64 answer;            // hand_over: address, in memory of the host, of the counts
  u64 restarts;          // hand_over: 1: the counts start again from zero
};

// What a design over subtables takes.
struct OverSubtables {
  using Table = SubtableTable;
  using Batch = SubtableBatch;
};

}  // namespace warphash
