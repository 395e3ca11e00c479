// What every kernel is given: a table and a batch, by value. scripts/generate_abi.py writes the Python side of all
// abi.cuh into runtime/abi.py. A comment ahead of a declaration, or behind a field, becomes a docstring there.
//
// Layout. Every field is one 64-bit word, addresses included, and 0 means "none" for an address. So g++, nvcc and NVRTC
// agree on the layout without a rule about padding. A structure that derives from another begins with the fields of its
// base, in their order. A launch copies one table and one batch.
//
// A family of kernels has structures of its own (buckets/abi.cuh, chains/abi.cuh, subtables/abi.cuh, rows/abi.cuh). A
// task names those that it takes: Task::Table and Task::Batch. Those here are what the families share.
#pragma once
#include "platform/types.cuh"

namespace warphash {

// Hash functions a table can have. `multiplier` and `addend` hold one constant each.
constexpr u32 kMaxHashes = 4;

// Subtables a table can have (subtables/lines.cuh). Arrays of one more have the reserved buckets last.
constexpr u32 kMostSubtables = 8;

// Pairs that InsertBatch::displaced holds: more than the chains any device has in flight when the first one fails.
constexpr u64 kDisplacedCapacity = 1ull << 20;

// A table whose buckets lie in one array: its address, its size and its hash constants.
struct Table {
  u64 slots;                   // address of (buckets + reserved buckets) * slots_per_bucket slots
  u64 buckets;                 // hashed buckets; the reserved buckets (core/slot.cuh) follow
  u64 hashes;                  // functions in use
  u64 family;                  // Family
  u64 multiplier[kMaxHashes];  // constants of each function
  u64 addend[kMaxHashes];
};

// The family that hash functions are drawn from.
enum Family : u64 { kMixer = 0, kUniversal = 1 };

// What the schedules (core/cpu, core/gpu) take of any batch: how many elements, or a list of them.
struct Launch {
  u64 n;             // elements that this launch walks over, at most 2^31
  u64 indices;       // u32 list: element i is indices[i], for i < *count
  u64 count;         // address of the length of the list, u64
  u64 random;        // seed of what the launch draws
  u64 report;        // address of a Report
  u64 count_probes;  // 1: sum the buckets read into CountLine::probes
};

// An operation on the keys of a table: its arrays, and what becomes of values (core/bulk.cuh).
struct Batch : Launch {
  u64 keys;           // Word per element
  u64 values;         // Word per element
  u64 out_keys;       // Word per pair
  u64 out_values;     // Word per element, or per pair
  u64 out_flags;      // Flag per element, u8
  u64 out_counts;     // u32 per element
  u64 default_value;  // what find writes for an absent key: a Word, or the address of a value that is no word
  u64 room;           // pairs that out_keys and out_values have room for
  u64 op;             // Op: what the value of a present key becomes
  u64 kind;           // Kind: how the bits of a value are read
};

// An operation that may add keys by settle, claim and place: its scratch memory (core/insert.cuh).
struct InsertBatch : Batch {
  u64 leftover;    // u32 list, its length in Report::leftover
  u64 claims;      // u32 array of claim_mask + 1 words, all ones
  u64 claim_mask;  // a power of two, minus one
  u64 winners;     // u32 list, its length in Report::winners
  u64 losers;      // u32 list, its length in Report::losers
  u64 displaced;   // kDisplacedCapacity pairs; where values lie apart, their keys
};

// The elements of a large batch in the order of the parts of a table (core/gpu/partition.cuh).
struct PartitionBatch : Launch {
  u64 keys;      // Word per element
  u64 values;    // Word per element
  u64 out_keys;  // the same in their new order
  u64 out_values;
  u64 part_sizes;  // two u64 per part: its elements, and how many places of it are given out
  u64 parts;       // at most kMostParts
  u64 part_shift;  // logarithm of the buckets of a part
};

// Lines of counts in a report, and as many of signals, which the threads of a launch share (core/report.cuh).
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
  u64 suspended;  // 1: a pair is displaced, so nobody starts to evict
  u64 unused[7];
};

// What the kernels of one bulk operation count: a line of lengths, then lines of counts, then lines of signals.
struct Report {
  u64 leftover;   // elements that settle could not decide
  u64 winners;    // of these, the one per key that is to be placed
  u64 losers;     // and its duplicates
  u64 displaced;  // pairs whose eviction chain ended without a slot
  u64 unplaced;   // elements that found no slot and moved nobody
  u64 unused[3];  // the first: crowds of a quotient table (quotient/crowds.cuh)
  CountLine counts[kReportLines];
  SignalLine signals[kReportLines];
};

// What becomes of the value of a key that is there already.
enum Op : u64 { kKeep = 0, kReplace, kAdd, kMin, kMax, kOr, kAnd, kXor };

// How the bits of a value are read by an Op: class in the low byte, width in bits above it.
enum Kind : u64 { kUnsigned = 0, kSigned = 1, kFloat = 2 };

// What an element of a mixed batch does (chains/execute.cuh, tickets/execute.cuh).
enum Operation : u8 { kFindKey = 0, kInsertKey, kAssignKey, kEraseKey };

// What an update did for one element.
enum Flag : u8 { kPresent = 0, kChanged = 1, kUnplaced = 2 };

}  // namespace warphash
