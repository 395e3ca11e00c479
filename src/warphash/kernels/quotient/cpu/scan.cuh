// `scan` (quotient/find.cuh) line by line.
//
// A thread takes the pairs of some lines, and copies them to places that it asks for together. Whether a slot has a pair is
// a branch that the processor cannot predict; how many pairs a line has is one such branch for all of its slots. If the
// pairs are only counted, no key is computed.
#pragma once
#include <cstring>

#include "core/cpu/schedule.cuh"
#include "quotient/find.cuh"

namespace warphash {

template <class D>
struct ScanLineByLine : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename S::Value;
  static constexpr bool kWalks = true;

  // Elements are the slots from the first bucket on.
  static void run(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    const QuotientTable t = table;  // local copies, as in core/cpu/schedule.cuh
    const QuotientBatch b = batch;
    Pairs pairs;
    const bool copies = b.out_keys || b.out_values;
    u64 counted = 0;
    for (u64 i = begin; i < end;) {
      const u32 bucket = static_cast<u32>(b.first_bucket + i / S::kSlots), first = static_cast<u32>(i % S::kSlots);
      const u64 left = end - i, in_line = S::kSlots - first, n = left < in_line ? left : in_line;
      const u32 asked = (S::kAllSlots >> (S::kSlots - n)) << first;
      const u32* const w = line_at(t, bucket)->words;
      const u32 taken = S::occupied(w) & asked;
      i += n;
      if (copies)
        pairs.take(t, b, bucket, w, taken);
      else
        counted += bit_count(taken);
    }
    pairs.flush(t, b);
    if (counted) fetch_add(&report_of(b)->winners, counted);
  }

 private:
  class Pairs {
    static constexpr u32 kRoom = 256;
    Home<Word> homes_[kRoom];
    Word keys_[kRoom];
    Value values_[kRoom];
    u32 count_ = 0;

   public:
    WARPHASH_FN void take(const QuotientTable& t, const QuotientBatch& b, u32 bucket, const u32* w, u32 taken) {
      if (count_ + S::kSlots > kRoom) flush(t, b);
      const u32 first = D::first_of_range(t, bucket);
      u32 count = count_;
      for (; taken; taken &= taken - 1) {
        const u32 slot = first_bit(taken);
        homes_[count] = D::home_in(t, first, w, bucket, slot);
        if constexpr (S::kHasValue) values_[count] = *S::value(w, slot);
        ++count;
      }
      count_ = count;
    }
    [[gnu::noinline]] void flush(const QuotientTable& t, const QuotientBatch& b) {
      if (!count_) return;
      const u64 place = fetch_add(&report_of(b)->winners, static_cast<u64>(count_));
      const u64 room = place < b.room ? b.room - place : 0, n = room < count_ ? room : count_;
      for (u32 k = 0; k < n; ++k) keys_[k] = unpermuted(t, D::hash_of(t, homes_[k]));
      if (b.out_keys) std::memcpy(pointer<Word>(b.out_keys) + place, keys_, n * sizeof(Word));
      if constexpr (S::kHasValue)
        if (b.out_values) std::memcpy(pointer<Value>(b.out_values) + place, values_, n * sizeof(Value));
      count_ = 0;
    }
  };
};

template <class D>
struct TaskOnCpu<ScanLines<D>> {
  using type = ScanLineByLine<D>;
};

}  // namespace warphash
