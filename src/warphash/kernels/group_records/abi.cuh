// What kernels that accumulate values group by group are given (core/abi.cuh, group_records/).
#pragma once
#include "groups/abi.cuh"

namespace warphash {

// The type of a value.
enum ValueType : u64 {
  kInt8Value = 0,
  kInt16Value,
  kInt32Value,
  kInt64Value,
  kUint8Value,
  kUint16Value,
  kUint32Value,
  kUint64Value,
  kFloat32Value,
  kFloat64Value
};

// What a group keeps of its values. Integers have 64 bits, and floating-point numbers are float64.
enum Accumulation : u64 {
  kCountKept = 0,
  kSumKept,
  kFloatSumKept,
  kProductKept,
  kFloatProductKept,
  kMinKept,
  kMaxKept,
  kTrueKept,
  kSquaresKept,
  kDistancesKept
};

// A column of values.
struct ValueColumn {
  u64 values;         // packed, one per element
  u64 type;           // ValueType
  u64 valid;          // u8 per element: 0 for a null; 0: there are no nulls, as on a GPU
  u64 brought;        // the values in the order of parts
  u64 brought_valid;  // the same of `valid`
};

// A word of each record.
struct Accumulator {
  u64 operation;  // Accumulation
  u64 column;     // of ValueColumn; any for kCountKept of a batch without columns
  u64 is_count;   // 1: elements count, whatever their values are
  u64 centers;    // kSquaresKept, kDistancesKept: f64 per group: what is subtracted of its values
  u64 out;        // u64 per group
};

// Elements whose values go to the records of their keys. A record has a word of 64 bits for each accumulator.
struct RecordBatch : PartBatch {
  u64 columns;         // ValueColumn per column
  u64 accumulators;    // Accumulator per word
  u64 width;           // words of a record
  u64 cells;           // words of records
  u64 room;            // records of a stretch
  u64 stretch_length;  // elements of a stretch, but for the last
  u64 stretches;       // how many there are
  u64 stretch_sizes;   // u32 per stretch: the records in use; 0: `room`, less the one of dropped elements
  u64 records_of;      // u32 per part: where its records begin in `cells`
  u64 filled;          // u64: how many records of parts there are
  u64 is_first;  // record_parts: u32 per 32 elements, and one more per part, 0 at first: a bit for each first element
};

}  // namespace warphash
