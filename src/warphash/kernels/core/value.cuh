// What an upsert does to the value of a key that is there already.
//
// The value is one aligned word of the slot. No key moves in a kernel that combines, so an atomic on the value alone is
// enough. Integers as wide as their word have a native atomic, and so have bitwise operations. All others (minima of
// floats, values narrower than their word) loop on compare-and-swap, and stop as soon as the stored value would not
// change.
#pragma once
#include "core/abi.cuh"
#include "platform/platform.cuh"

namespace warphash {

template <class To, class From>
WARPHASH_FN To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "same bits");
  return __builtin_bit_cast(To, from);
}

WARPHASH_FN u64 kind_class(u64 kind) { return kind & 0xff; }
WARPHASH_FN u32 kind_bits(u64 kind) { return static_cast<u32>(kind >> 8); }

template <class T>
WARPHASH_FN T combine_as(u64 op, T a, T b) {
  return op == kAdd ? static_cast<T>(a + b) : op == kMin ? (b < a ? b : a) : (a < b ? b : a);
}

// The minimum or the maximum of floats of 32 or 64 bits, as bits.
WARPHASH_FN u64 extreme_float(u64 op, u32 bits, u64 a, u64 b) {
  const u64 sign = 1ull << (bits - 1), infinity = bits == 32 ? 0x7f800000ull : 0x7ff0000000000000ull;
  const bool nan_a = (a & (sign - 1)) > infinity, nan_b = (b & (sign - 1)) > infinity;
  if (nan_a != nan_b) return nan_a ? a : b;
  if (nan_a) return a < b ? b : a;
  const u64 rank_a = a & sign ? ~a : a | sign, rank_b = b & sign ? ~b : b | sign, ranks = sign | (sign - 1);
  return ((rank_a & ranks) < (rank_b & ranks)) == (op == kMin) ? a : b;
}

WARPHASH_FN i64 sign_extend(u64 x, u32 bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }

WARPHASH_FN u64 combine_bits(u64 op, u64 kind, u64 a, u64 b) {
  const u32 bits = kind_bits(kind);
  const u64 mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  if (op == kOr) return a | b;
  if (op == kAnd) return a & b;
  if (op == kXor) return a ^ b;
  if (kind_class(kind) == kSigned) {
    if (op == kAdd) return (a + b) & mask;
    return static_cast<u64>(combine_as(op, sign_extend(a, bits), sign_extend(b, bits))) & mask;
  }
  if (kind_class(kind) == kFloat) {
    if (op != kAdd) return extreme_float(op, bits, a, b);
    if (bits == 32) return bits_as<u32>(bits_as<float>(static_cast<u32>(a)) + bits_as<float>(static_cast<u32>(b)));
    return bits_as<u64>(bits_as<double>(a) + bits_as<double>(b));
  }
  return combine_as(op, a, b) & mask;
}

template <class Word>
WARPHASH_FN void combine(Word* at, Word operand, u64 op, u64 kind) {
  if (op == kKeep) return;
  if (op == kReplace) return store_relaxed(at, operand);
  const bool whole_word = kind_bits(kind) == 8 * sizeof(Word);
  if (op == kAdd && whole_word) {
    if (kind_class(kind) == kFloat) return atomic_add_float(at, operand);
    return atomic_add(at, operand);
  }
  if (op == kOr) return static_cast<void>(fetch_or(at, operand));
  if (op == kAnd) return static_cast<void>(fetch_and(at, operand));
  if (op == kXor) return atomic_xor(at, operand);
  Word old = load_relaxed(at);
  for (;;) {
    const Word wanted = static_cast<Word>(combine_bits(op, kind, old, operand));
    if (wanted == old) return;
    const Word seen = compare_exchange_word(at, old, wanted);
    if (seen == old) return;
    old = seen;
  }
}

}  // namespace warphash
