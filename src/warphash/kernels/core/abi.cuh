// What a kernel is given. runtime/abi.py mirrors these structures field by field.
//
// Layout: every field is one 64-bit word, addresses included, so that g++, nvcc and NVRTC agree on it without a rule
// about padding. A launch copies one Table and one Batch by value; 0 means "none" for an address.
#pragma once
#include "platform/types.cuh"

namespace warphash {

constexpr u32 kMaxHashes = 4;
constexpr u32 kMostSubtables = 8;
constexpr u64 kHomelessCapacity = 1ull << 20;

// A table on the device.
struct Table {
  u64 slots;        // address of (buckets + annex) * slots_per_bucket slots
  u64 buckets;      // hashed buckets; the annex (core/slot.cuh) follows them
  u64 hashes;       // functions in use, 2 to 4
  u64 threshold;    // iceberg: slots of a primary bucket that are open to every key
  u64 chain_limit;  // cuckoo: evictions before a key is given up
  u64 family;       // Family
  u64 placement;    // Placement
  u64 early_exit;   // 1: find stops at a bucket that was never full
  u64 pool;         // lists: address of a Pool (chains/slab_allocator.cuh)
  u64 pool_units;   // lists: address of the units of a pool that has one super block, or 0
  u64 tails;        // lists of keys that repeat: address of a u32 for each list (chains/append.cuh), or 0
  // Constants of each hash function. With subtables, the first multiplier is the point of digests (core/wide.cuh).
  u64 multiplier[kMaxHashes];
  u64 addend[kMaxHashes];
  // Subtables (subtables/lines.cuh). Of the arrays of kMostSubtables + 1, the last element is the annex's.
  u64 coordination;  // Coordination
  u64 value_bytes;   // of a value where it is no word, a multiple of 4
  u64 bases[kMostSubtables + 1];
  u64 sizes[kMostSubtables + 1];         // buckets
  u64 salts[kMostSubtables + 1];         // the last one draws the first subtable of a key
  u64 shares[kMostSubtables];            // of 2^32 draws: where the share of subtable i ends
  u64 least_begins[kMostSubtables];      // where it began at the least, since the guests of subtable i were told,
  u64 most_ends[kMostSubtables];         // and ended at the most
  u64 probe_limit;                       // linear probing: buckets in a row that a key may be in
  u64 bucket_words[kMostSubtables + 1];  // address of the locks of a subtable, behind which its guests are
};

enum Family : u64 { kMixer = 0, kUniversal = 1 };
enum Coordination : u64 { kVoter = 0, kSpin = 1 };
enum Placement : u64 { kFirst = 0, kLeastLoaded = 1 };

// One bulk operation.
struct Batch {
  u64 n;        // elements this launch walks over
  u64 keys;     // Word per element
  u64 values;   // Word per element
  u64 indices;  // u32 list: element i is indices[i], for i < *count
  u64 count;    // address of a u64
  u64 out_keys;
  u64 out_values;
  u64 out_flags;   // u8 per element: kPresent, kChanged or kUnplaced
  u64 out_counts;  // u32 per element
  u64 default_value;
  u64 op;    // Op
  u64 kind;  // Kind
  u64 random;
  u64 report;    // address of a Report
  u64 leftover;  // u32 list, its length in Report::leftover
  u64 claims;    // u32 array of claim_mask + 1 words, all ones
  u64 claim_mask;
  u64 winners;          // u32 list, its length in Report::winners
  u64 losers;           // u32 list, its length in Report::losers
  u64 homeless;         // kHomelessCapacity slots
  u64 count_probes;     // 1: sum the buckets read into Report::probes
  u64 source_buckets;   // migrate, relist: hashed buckets of the table whose slots `keys` points at
  u64 source_pool;      // relist: address of its Pool
  u64 answer;           // buckets/gpu/one_block.cuh: address, in memory of the host, of the outcome
  u64 ticket;           // and what its first word becomes
  u64 operations;       // execute: u8 per element, Operation
  u64 parts;            // buckets/gpu/partition.cuh: how many, at most kMostParts
  u64 part_shift;       // and the logarithm of the buckets of each
  u64 homeless_values;  // the values of `homeless`, where they lie apart from keys
  u64 spare_values;     // a value's room for each element, where values are no words
  u64 subtable;         // that is resized, scanned or audited
  u64 closed;           // the subtable, plus one, that nothing is placed in
  u64 unique;           // 1: the caller vouches that keys do not repeat, and are not in the table
  u64 adopts;           // 1: elements that find no slot become homeless, too (subtables/insert.cuh)
};

constexpr u64 kReportLines = 32;

// Counts of some of the threads (core/report.cuh).
struct CountLine {
  u64 changed;                     // elements that added (or erased) a key, without those that `placed` counts
  u64 probes;                      // buckets read, where asked for
  u64 mismatches;                  // what a check found wrong
  u64 erased;                      // elements that erased a key, where others add some
  u64 placed[kMostSubtables / 2];  // keys added to, or erased from, each subtable: of two in each word, low half first
};

// One of the copies of a word that some of the threads read.
struct SignalLine {
  u64 suspended;  // 1: a pair is homeless, so nobody starts to evict
  u64 unused[7];
};

struct Report {
  u64 leftover;  // elements that settle could not decide
  u64 winners;   // of these, the one per key that is to be placed
  u64 losers;    // and its duplicates
  u64 homeless;  // pairs whose eviction chain ended without a slot
  u64 unplaced;  // elements that found no slot and moved nobody
  u64 unused[3];
  CountLine counts[kReportLines];
  SignalLine signals[kReportLines];
};

// What becomes of the value of a key that is there already.
enum Op : u64 { kKeep = 0, kReplace, kAdd, kMin, kMax, kOr, kAnd, kXor };
// How the bits of a value are read by an Op: class in the low byte, width in bits above it.
enum Kind : u64 { kUnsigned = 0, kSigned = 1, kFloat = 2 };

// What an element of a mixed batch does (kernels/chains/execute.cuh).
enum Operation : u8 { kFindKey = 0, kInsertKey, kAssignKey, kEraseKey };

enum Flag : u8 { kPresent = 0, kChanged = 1, kUnplaced = 2 };

}  // namespace warphash
