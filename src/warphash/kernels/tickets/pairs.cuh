// The slots of a table with a ticket board: a pair each, of any width.
//
// Layout of a slot (bytes):
//   0           w or more      stride
//   +-----------+------------+ - - +
//   |  key  w   |  value  v  | pad |
//   +-----------+------------+ - - +
//   w = 4, 8, 16, 32, 64 or 128; v = 0, 4, 8, or TicketTable::value_bytes, a multiple of 4. A value of 8 bytes is
//   aligned to 8. The stride is a multiple of the key's alignment, w or 16.
//
// A slot has no states, and no pattern of a key is reserved: whether it holds a pair says its ticket
// (tickets/ticket_board.cuh).
// A free slot may hold anything.
//
// Memory order: relaxed. A pair is written by the one who booked its slot, and read in later kernels. Only values
// change while others look: a word by an atomic; a wider one by one element of each key alone (tickets/insert.cuh).
#pragma once
#include "core/bulk.cuh"
#include "core/bytes.cuh"
#include "tickets/abi.cuh"

namespace warphash {

// A value under way: a word or, of a wider one, its address.
template <int kBytes>
struct ValueOf {
  using Word = u64;
};
template <>
struct ValueOf<4> {
  using Word = u32;
};

template <class Word_, int kValueBytes_>
struct Pairs {
  using Word = Word_;
  static constexpr int kValueBytes = kValueBytes_, kSlots = 1;
  static constexpr bool kWide = sizeof(Word) > 8;
  static constexpr bool kHasValue = kValueBytes == 4 || kValueBytes == 8;  // a word
  static constexpr u64 kAlignment = kWide ? 16 : sizeof(Word);
  static constexpr u64 kValueAt = kValueBytes == 8 && sizeof(Word) == 4 ? 8 : sizeof(Word);
  // Key and value are one aligned word of twice the width, which one load reads.
  static constexpr bool kWhole = kHasValue && sizeof(Word) == static_cast<u64>(kValueBytes);
  using Value = typename ValueOf<kValueBytes>::Word;

  WARPHASH_FN static u64 value_bytes(const TicketTable& t) {
    return kValueBytes == kRow ? t.value_bytes : static_cast<u64>(kValueBytes);
  }
  WARPHASH_FN static u64 stride(const TicketTable& t) {
    constexpr u64 alignment = kValueAt == 8 ? 8 : kAlignment;
    return (kValueAt + value_bytes(t) + alignment - 1) / alignment * alignment;
  }
  WARPHASH_FN static u8* at(const TicketTable& t, u64 slots, u64 slot) {
    return in_global(reinterpret_cast<u8*>(slots) + slot * stride(t));
  }
  WARPHASH_FN static u8* at(const TicketTable& t, u32 slot) {
    WARPHASH_ASSERT(slot < t.buckets);
    return at(t, t.slots, slot);
  }
  WARPHASH_FN static u8* value_of(u8* pair) { return pair + kValueAt; }
  WARPHASH_FN static Word key_of(const u8* pair) { return load_relaxed(reinterpret_cast<const Word*>(pair)); }

  // What a search reads of a slot. `kFrozen`: nobody changes values meanwhile, and the value is wanted.
  struct Seen {
    Word key;
    Value value;  // of a pair that is read at once
  };
  template <bool kFrozen>
  WARPHASH_FN static Seen look(const u8* pair) {
    if constexpr (kFrozen && kWhole) {
      const auto whole = load_slot<true>(reinterpret_cast<const Slot<Word, true>*>(pair));
      return {whole.key, whole.value};
    } else if constexpr (kFrozen && !kWide) {
      return {load_slot<true>(reinterpret_cast<const Slot<Word, false>*>(pair)).key, 0};
    } else {
      return {key_of(pair), 0};
    }
  }
  // The value of a pair that was seen.
  WARPHASH_FN static Value value_in([[maybe_unused]] const Seen& seen, u8* pair) {
    if constexpr (kWhole)
      return seen.value;
    else if constexpr (kHasValue)
      return load_relaxed(reinterpret_cast<const Value*>(value_of(pair)));
    else
      return reinterpret_cast<u64>(value_of(pair));
  }
  // Writes a value to element i of an array of them.
  WARPHASH_FN static void hand_out(u64 values, u64 i, Value value, [[maybe_unused]] u64 bytes) {
    if constexpr (kHasValue)
      store_once(pointer<Value>(values) + i, value);
    else if constexpr (kValueBytes == kRow)
      copy_row(pointer<u8>(values) + i * bytes, pointer<const u8>(value), bytes);
  }

  WARPHASH_FN static void put(const TicketTable& t, u8* pair, const Word& key, const u8* value) {
    if constexpr (kWhole) {
      *reinterpret_cast<Slot<Word, true>*>(pair) = {key, load_once(reinterpret_cast<const Value*>(value))};
    } else {
      *reinterpret_cast<Word*>(pair) = key;
      if constexpr (kHasValue)
        *reinterpret_cast<Value*>(value_of(pair)) = load_once(reinterpret_cast<const Value*>(value));
      else if constexpr (kValueBytes == kRow)
        copy_row(value_of(pair), value, t.value_bytes);
    }
  }
  // Applies an upsert to the value of a pair.
  WARPHASH_FN static void combine_with(const TicketTable& t, const Batch& b, u8* pair, u32 element) {
    const u8* const operand = pointer<const u8>(b.values) + element * value_bytes(t);
    if constexpr (kHasValue) {
      combine(reinterpret_cast<Value*>(value_of(pair)), load_once(reinterpret_cast<const Value*>(operand)), b.op,
              b.kind);
    } else if constexpr (kValueBytes == kRow) {
      if (b.op == kKeep) return;
      if (b.op == kReplace)
        copy_row(value_of(pair), operand, t.value_bytes);
      else if (t.value_bytes == 4)
        combine(reinterpret_cast<u32*>(value_of(pair)), load_once(reinterpret_cast<const u32*>(operand)), b.op, b.kind);
      else if (t.value_bytes == 8)
        combine(reinterpret_cast<u64*>(value_of(pair)), load_once(reinterpret_cast<const u64*>(operand)), b.op, b.kind);
    }
  }
};

}  // namespace warphash
