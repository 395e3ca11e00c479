// What the kernels that combine repeated keys ahead of a table are given (core/abi.cuh, aggregates/aggregates.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// How blocks spread keys over their entries.
struct Aggregation {
  u64 seed;  // of the hash function
};

// Elements of an update that changes values: in, and out with fewer copies of the hot keys.
struct AggregateBatch : Launch {
  u64 keys;        // a word per element
  u64 values;      // a word per element
  u64 op;          // Op, any but kKeep
  u64 kind;        // Kind
  u64 out_keys;    // a word per element that is left
  u64 out_values;  // a word per element that is left
  u64 elements;    // u32 per element that is left: one element of its key
  u64 length;      // address of a u64, zero before: elements that are left; of a sample, of two u64
};

// The flags of the elements that were left, back to the batch.
struct SpreadBatch : Launch {
  u64 elements;   // u32 per element that was left
  u64 flags;      // Flag per element that was left, u8
  u64 out_flags;  // Flag per element of the batch, u8
};

}  // namespace warphash
