// The words of a record, and how the values of a block of elements go to them.
//
// A word is 64 bits: an integer modulo 2^64, a float64, or a rank. Minima and maxima are kept as ranks: signed integers in
// whose order the values lie. So -0.0 lies below 0.0, and NaN has the rank that wins: the least of all for a minimum, the
// greatest of all for a maximum. Ranks, integers and counts do not depend on the order of elements. Sums and products
// of floating-point numbers do (group_records/cpu/records.cuh says in which order they are made).
//
// Elements are numbered block by block, and each accumulator takes the values of a block in a loop of its own: the numbers
// of a block stay in the first-level cache, and a loop knows its type and its operation.
#pragma once
#include <type_traits>

#include "core/bulk.cuh"
#include "core/value.cuh"
#include "group_records/abi.cuh"

namespace warphash {

using i8 = signed char;
using i16 = short;
using f32 = float;
using f64 = double;

constexpr u32 kRecordBlock = 256;  // elements of a block
constexpr u64 kSignBit = 1ull << 63;

// ---- operations: the word of no value, the word of a value, and the word of two
struct SumOperation {
  static constexpr u64 kIdentity = 0;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return static_cast<u64>(x);
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return a + b; }
};
struct FloatSumOperation {
  static constexpr u64 kIdentity = 0;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return bits_as<u64>(static_cast<f64>(x));
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return bits_as<u64>(bits_as<f64>(a) + bits_as<f64>(b)); }
};
struct ProductOperation : SumOperation {
  static constexpr u64 kIdentity = 1;
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return a * b; }
};
struct FloatProductOperation : FloatSumOperation {
  static constexpr u64 kIdentity = __builtin_bit_cast(u64, 1.0);
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return bits_as<u64>(bits_as<f64>(a) * bits_as<f64>(b)); }
};
struct TrueOperation : SumOperation {
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return x != 0;
  }
};
struct SquaresOperation : FloatSumOperation {
  template <class T>
  WARPHASH_FN static u64 word(T x, f64 center) {
    const f64 distance = static_cast<f64>(x) - center;
    return bits_as<u64>(distance * distance);
  }
};

// The rank of a float64, and back: the bits of a negative number are turned around, but for the sign.
WARPHASH_FN u64 turned(u64 bits) { return bits ^ static_cast<u64>(static_cast<i64>(bits) >> 63) >> 1; }
template <class T, u64 kRankOfNan>
WARPHASH_FN u64 rank_of(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x == x ? turned(bits_as<u64>(static_cast<f64>(x))) : kRankOfNan;
  else if constexpr (std::is_same_v<T, u64>)
    return x ^ kSignBit;
  else
    return static_cast<u64>(static_cast<i64>(x));
}

// `a` if the condition holds, else `b`, without a branch: of groups with few values, a new minimum is hard to foretell
// (docs/performance/group-by.md).
WARPHASH_FN u64 chosen(bool condition, u64 a, u64 b) { return b ^ ((a ^ b) & (0 - static_cast<u64>(condition))); }

struct MinOperation {
  static constexpr u64 kIdentity = ~kSignBit;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return rank_of<T, kSignBit>(x);
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return chosen(static_cast<i64>(b) < static_cast<i64>(a), b, a); }
};
struct MaxOperation {
  static constexpr u64 kIdentity = kSignBit;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return rank_of<T, ~kSignBit>(x);
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return chosen(static_cast<i64>(a) < static_cast<i64>(b), b, a); }
};

// ---- which operation and which type: see.template operator()<Operation>(), see.template operator()<T>()
template <class See>
WARPHASH_FN void with_operation(u64 operation, const See& see) {
  switch (operation) {
    case kFloatSumKept:
      return see.template operator()<FloatSumOperation>();
    case kProductKept:
      return see.template operator()<ProductOperation>();
    case kFloatProductKept:
      return see.template operator()<FloatProductOperation>();
    case kMinKept:
      return see.template operator()<MinOperation>();
    case kMaxKept:
      return see.template operator()<MaxOperation>();
    case kTrueKept:
      return see.template operator()<TrueOperation>();
    case kSquaresKept:
      return see.template operator()<SquaresOperation>();
    default:
      return see.template operator()<SumOperation>();  // kSumKept, and counts, which are added
  }
}
template <class See>
WARPHASH_FN void with_type(u64 type, const See& see) {
  switch (type) {
    case kInt8Value:
      return see.template operator()<i8>();
    case kInt16Value:
      return see.template operator()<i16>();
    case kInt32Value:
      return see.template operator()<i32>();
    case kInt64Value:
      return see.template operator()<i64>();
    case kUint8Value:
      return see.template operator()<u8>();
    case kUint16Value:
      return see.template operator()<u16>();
    case kUint32Value:
      return see.template operator()<u32>();
    case kUint64Value:
      return see.template operator()<u64>();
    case kFloat32Value:
      return see.template operator()<f32>();
    default:
      return see.template operator()<f64>();
  }
}
WARPHASH_FN u64 identity_of(const Accumulator& accumulator) {
  u64 made = 0;
  with_operation(accumulator.operation, [&]<class Operation>() { made = Operation::kIdentity; });
  return made;
}

// A word as the caller gets it.
struct Finish {
  u64* out;
  u64 flipped = 0;
  bool is_turned = false;

  Finish() = default;
  Finish(const RecordBatch& b, const Accumulator& accumulator) : out(pointer<u64>(accumulator.out)) {
    if (accumulator.operation != kMinKept && accumulator.operation != kMaxKept) return;
    const u64 type = pointer<const ValueColumn>(b.columns)[accumulator.column].type;
    is_turned = type == kFloat32Value || type == kFloat64Value;
    flipped = type == kUint64Value ? kSignBit : 0;
  }
  WARPHASH_FN u64 operator()(u64 word) const { return is_turned ? turned(word) : word ^ flipped; }
};

// ---- records
WARPHASH_FN const Accumulator& accumulator_of(const RecordBatch& b, u64 word) {
  return pointer<const Accumulator>(b.accumulators)[word];
}

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
    if constexpr (std::is_same_v<Operation, SquaresOperation>) center = centers[numbers[k]];
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
