// The slots of a line on a CPU. One thread has the line for itself while it is written: slots are vacated without an
// atomic, and compared by SIMD, if the processor has it.
#pragma once
#include "quotient/bucket.cuh"

namespace warphash {

template <class Slots>
struct SlotsOnCpu;

template <class Word, u32 kValueBytes, int kSlots>
struct SlotsOnCpu<MarkedSlots<Word, kValueBytes, kSlots>> : MarkedSlots<Word, kValueBytes, kSlots> {
  using Base = MarkedSlots<Word, kValueBytes, kSlots>;
  using Fields = FieldsOfLine<Base::kFilterBits / 8, Base::kFieldBits / 8, kSlots>;

  WARPHASH_FN static u32 matches(const u32* w, Word remainder, bool guest) {
    if constexpr (kComparesLines)
      return Fields::equal(w, Base::field_of(remainder, guest));
    else
      return Base::matches(w, remainder, guest);
  }
  WARPHASH_FN static u32 occupied(const u32* w) {
    if constexpr (kComparesLines)
      return Fields::with_bit(w, first_bit(Base::kOccupied));
    else
      return Base::occupied(w);
  }
  WARPHASH_FN static u32 guests(const u32* w) {
    if constexpr (kComparesLines)
      return Fields::with_bit(w, first_bit(Base::kGuest));
    else
      return Base::guests(w);
  }
  WARPHASH_FN static bool vacate(u32* w, u32 slot) {
    const u32 bit = Base::kFilterBits + slot * Base::kFieldBits, word = bit / 32, shift = bit % 32;
    w[word] &= ~(Base::kFieldMask << shift);
    if (shift + Base::kFieldBits > 32) w[word + 1] &= ~(Base::kFieldMask >> (32 - shift));
    return true;
  }
};

template <class Word, u32 kValueBytes, int kSlots>
struct SlotsOnCpu<SplitSlots<Word, kValueBytes, kSlots>> : SplitSlots<Word, kValueBytes, kSlots> {
  using Base = SplitSlots<Word, kValueBytes, kSlots>;
  using Tags = FieldsOfLine<Base::kFilterBits / 8, Base::kTagBits / 8, kSlots>;

  // As that of the base, without a branch on the slot: which slot a key has is hard to predict.
  WARPHASH_FN static u32 rest_at(u32 slot) {
    constexpr u32 kBehind = Base::kHasWideValues ? Base::kLastRest - Base::kRests - (kSlots - 1) : 0;
    return Base::kRests + Base::kStride * slot + (slot + 1) / kSlots * kBehind;
  }
  // With a tag of its own, a key has one candidate at most: there is no branch that is hard to predict.
  WARPHASH_FN static u32 matches(const u32* w, Word remainder, bool guest) {
    if constexpr (kComparesLines) {
      const u32 left = Tags::equal(w, Base::tag_of(remainder, guest));
      if (left & (left - 1)) [[unlikely]]
        return Base::matches(w, remainder, guest);
      const u32 slot = first_bit(left | 1u << (kSlots - 1));
      const u32 same = w[rest_at(slot)] == Base::rest_of(remainder);
      return left & (0u - same);
    } else {
      return Base::matches(w, remainder, guest);
    }
  }
  WARPHASH_FN static u32 occupied(const u32* w) {
    if constexpr (kComparesLines)
      return Tags::with_bit(w, first_bit(Base::kOccupied));
    else
      return Base::occupied(w);
  }
  WARPHASH_FN static u32 guests(const u32* w) {
    if constexpr (kComparesLines)
      return Tags::with_bit(w, first_bit(Base::kGuest));
    else
      return Base::guests(w);
  }
  WARPHASH_FN static bool vacate(u32* w, u32 slot) {
    w[1 + slot / 2] &= ~(Base::kTagMask << Base::kTagBits * (slot % 2));
    return true;
  }
};

template <class Word, u32 kValueBytes, int kSlots>
struct SlotsOnCpu<WholeSlots<Word, kValueBytes, kSlots>> : WholeSlots<Word, kValueBytes, kSlots> {
  using Base = WholeSlots<Word, kValueBytes, kSlots>;
  static constexpr int kFirstByte = 8;  // of the hash values

  WARPHASH_FN static u32 matches(const u32* w, Word remainder, bool guest) {
    if constexpr (kComparesLines) {
      const u32 kind = guest ? Base::guests(w) : ~Base::guests(w);
      return equal_words<Word, kFirstByte, kSlots>(w, remainder) & Base::occupied(w) & kind;
    } else {
      return Base::matches(w, remainder, guest);
    }
  }
  WARPHASH_FN static bool vacate(u32* w, u32 slot) {
    w[1] &= ~(0x10001u << slot);
    return true;
  }
};

}  // namespace warphash
