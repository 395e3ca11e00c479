// How the values of a block of elements go to the words of records, on a CPU.
//
// Elements are numbered block by block, and each accumulator takes the values of a block in a loop of its own: the numbers
// of a block stay in the first-level cache, and a loop knows its type and its operation.
#pragma once
#include "group_records/operations.cuh"

namespace warphash {

constexpr u32 kRecordBlock = 256;  // elements of a block

// Gives the records from `begin` to `end` the words of no values.
inline void begin_records(const RecordBatch& b, u64* cells, u64 begin, u64 end) {
  if (begin == end) return;
  for (u64 word = 0; word < b.width; ++word) {
    const u64 identity = identity_of(accumulator_of(b, word));
    for (u64 k = begin; k < end; ++k) cells[k * b.width + word] = identity;
  }
}

// The elements of a block, in the order of the batch or of the parts: element k has the record `numbers[k]`.
struct RecordedBlock {
  const u32* numbers;
  u64 first;
  u32 n;
  bool in_parts;
};

namespace records {

template <class Put>
WARPHASH_FN void for_each(const RecordedBlock& block, const u8* valid, const Put& put) {
  if (valid) {
    for (u32 k = 0; k < block.n; ++k)
      if (valid[k]) put(k);
  } else {
    for (u32 k = 0; k < block.n; ++k) put(k);
  }
}

template <class T, class Operation>
void add(const RecordBatch& b, const Accumulator& accumulator, u64* cells, const RecordedBlock& block, const T* values,
         const u8* valid) {
  const u64 width = b.width;
  const f64* const centers = pointer<const f64>(accumulator.centers);
  const u32* const numbers = block.numbers;
  for_each(block, valid, [&](u32 k) {
    u64& cell = cells[numbers[k] * width];
    f64 center = 0;
    if constexpr (Operation::kCentered) center = centers[numbers[k]];
    cell = Operation::combined(cell, Operation::word(values[k], center));
  });
}

}  // namespace records

// Accumulates the values of a block.
inline void add_values(const RecordBatch& b, u64* cells, const RecordedBlock& block) {
  for (u64 word = 0; word < b.width; ++word) {
    const Accumulator accumulator = accumulator_of(b, word);
    u64* const own = cells + word;
    if (accumulator.is_count) {
      records::for_each(block, nullptr, [&](u32 k) { ++own[block.numbers[k] * b.width]; });
      continue;
    }
    const ValueColumn column = pointer<const ValueColumn>(b.columns)[accumulator.column];
    const u64 values = block.in_parts ? column.brought : column.values;
    const u64 flags = block.in_parts ? column.brought_valid : column.valid;
    const u8* const valid = flags ? pointer<const u8>(flags) + block.first : nullptr;
    if (accumulator.operation == kCountKept) {
      records::for_each(block, valid, [&](u32 k) { ++own[block.numbers[k] * b.width]; });
      continue;
    }
    with_type(column.type, [&]<class T>() {
      with_operation(accumulator.operation, [&]<class Operation>() {
        records::add<T, Operation>(b, accumulator, own, block, pointer<const T>(values) + block.first, valid);
      });
    });
  }
}

}  // namespace warphash
