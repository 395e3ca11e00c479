// The words that groups keep of values, on any engine.
//
// A word is 64 bits: an integer modulo 2^64, a float64, or a rank. Minima and maxima are kept as ranks: signed integers
// in whose order the values lie. So -0.0 lies below 0.0, and NaN has the rank that wins: the least of all for a
// minimum, the greatest of all for a maximum. Ranks, integers and counts do not depend on the order of elements. Sums
// and products of floating-point numbers do (group_records/cpu/records.cuh and group_records/gpu/accumulate.cuh say in
// which order they are made).
//
// An operation says which word no value has (kIdentity), which word a value has, and which word two have together.
// kAtomic: what combines a word in the memory of a GPU. kCentered: the word of a value depends on the center of its
// group, too.
#pragma once
#include "core/bulk.cuh"
#include "core/value.cuh"
#include "group_records/abi.cuh"

namespace warphash {

using i8 = signed char;
using i16 = short;
using f32 = float;
using f64 = double;

constexpr u64 kSignBit = 1ull << 63;

enum class Atomic { kSwap, kAdd, kAddFloat, kMinimum, kMaximum };  // kSwap: a compare-and-swap in a loop

// ---- operations: the word of no value, the word of a value, and the word of two
struct SumOperation {
  static constexpr u64 kIdentity = 0;
  static constexpr Atomic kAtomic = Atomic::kAdd;
  static constexpr bool kCentered = false;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return static_cast<u64>(x);
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return a + b; }
};
struct FloatSumOperation {
  static constexpr u64 kIdentity = 0;
  static constexpr Atomic kAtomic = Atomic::kAddFloat;
  static constexpr bool kCentered = false;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return bits_as<u64>(static_cast<f64>(x));
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return bits_as<u64>(bits_as<f64>(a) + bits_as<f64>(b)); }
};
struct ProductOperation : SumOperation {
  static constexpr u64 kIdentity = 1;
  static constexpr Atomic kAtomic = Atomic::kSwap;
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return a * b; }
};
struct FloatProductOperation : FloatSumOperation {
  static constexpr Atomic kAtomic = Atomic::kSwap;
  static constexpr u64 kIdentity = __builtin_bit_cast(u64, 1.0);
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return bits_as<u64>(bits_as<f64>(a) * bits_as<f64>(b)); }
};
struct TrueOperation : SumOperation {
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return x != 0;
  }
};
struct DistancesOperation : FloatSumOperation {
  static constexpr bool kCentered = true;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64 center) {
    return bits_as<u64>(static_cast<f64>(x) - center);
  }
};
struct SquaresOperation : DistancesOperation {
  template <class T>
  WARPHASH_FN static u64 word(T x, f64 center) {
    const f64 distance = static_cast<f64>(x) - center;
    return bits_as<u64>(distance * distance);
  }
};

// What the compiler of kernels for a GPU tells without the headers of the standard library.
template <class T>
constexpr bool kIsFloat = static_cast<T>(0.5) != static_cast<T>(0);
template <class T>
constexpr bool kIsUnsigned64 = sizeof(T) == 8 && !kIsFloat<T> && static_cast<T>(-1) > static_cast<T>(0);

// The rank of a float64, and back: the bits of a negative number are turned around, but for the sign.
WARPHASH_FN u64 turned(u64 bits) { return bits ^ static_cast<u64>(static_cast<i64>(bits) >> 63) >> 1; }
template <class T, u64 kRankOfNan>
WARPHASH_FN u64 rank_of(T x) {
  if constexpr (kIsFloat<T>)
    return x == x ? turned(bits_as<u64>(static_cast<f64>(x))) : kRankOfNan;
  else if constexpr (kIsUnsigned64<T>)
    return x ^ kSignBit;
  else
    return static_cast<u64>(static_cast<i64>(x));
}

// `a` if the condition holds, else `b`, without a branch: of groups with few values, a new minimum is hard to foretell
// (docs/performance/group-by.md).
WARPHASH_FN u64 chosen(bool condition, u64 a, u64 b) { return b ^ ((a ^ b) & (0 - static_cast<u64>(condition))); }

struct MinOperation {
  static constexpr u64 kIdentity = ~kSignBit;
  static constexpr Atomic kAtomic = Atomic::kMinimum;
  static constexpr bool kCentered = false;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return rank_of<T, kSignBit>(x);
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return chosen(static_cast<i64>(b) < static_cast<i64>(a), b, a); }
};
struct MaxOperation {
  static constexpr u64 kIdentity = kSignBit;
  static constexpr Atomic kAtomic = Atomic::kMaximum;
  static constexpr bool kCentered = false;
  template <class T>
  WARPHASH_FN static u64 word(T x, f64) {
    return rank_of<T, ~kSignBit>(x);
  }
  WARPHASH_FN static u64 combined(u64 a, u64 b) { return chosen(static_cast<i64>(a) < static_cast<i64>(b), b, a); }
};

// ---- which operation and which type: see.template operator()<Operation>(), see.template operator()<T>()
// A compiler of kernels for a GPU takes no templated lambda here: `see` is of a class there.
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
    case kDistancesKept:
      return see.template operator()<DistancesOperation>();
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
struct IdentityOf {
  u64& made;
  template <class Operation>
  WARPHASH_FN void operator()() const {
    made = Operation::kIdentity;
  }
};
WARPHASH_FN u64 identity_of(const Accumulator& accumulator) {
  u64 made = 0;
  with_operation(accumulator.operation, IdentityOf{made});
  return made;
}

// A word as the caller gets it.
struct Finish {
  u64* out;
  u64 flipped = 0;
  bool is_turned = false;

  Finish() = default;
  WARPHASH_FN Finish(const RecordBatch& b, const Accumulator& accumulator) : out(pointer<u64>(accumulator.out)) {
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

}  // namespace warphash
