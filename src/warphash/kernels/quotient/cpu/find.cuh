// The find of a CPU: one pass over the batch, which looks at homes, and one over the keys whose bit is set in the filter
// of their home.
//
//   1. The homes of a block of keys are computed together, by SIMD. Their lines are prefetched one by one, while the
//      block before is looked at.
//   2. A look writes the answer of the key: its value and presence, or that it is absent. If the key may be a guest, it
//      stays in a list, whose length grows by one or by none: there is no branch.
//   3. When the list is long enough to have a block of lines under way, its keys are looked for in their second buckets.
//   4. The answers of a large batch are held until step 3 has been done for them (core/cpu/held_answers.cuh).
//
// Why: as in buckets/cpu/find.cuh. The schedule of core/cpu/schedule.cuh takes a branch for each key, which the
// processor cannot predict. (docs/performance/quotient.md) Keys are asked for, too: the lines of buckets under way leave
// the processor no place to fetch keys ahead by itself. (docs/performance/cpu.md)
#pragma once
#include "core/cpu/held_answers.cuh"
#include "core/cpu/schedule.cuh"
#include "quotient/cpu/lines.cuh"
#include "quotient/find.cuh"

namespace warphash {

template <class D>
struct FindInPassesOverLines : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename S::Value;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64, kListed = 16 * kBlock, kKeysAhead = 4 * kBlock;

  static void run(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    if constexpr (S::kHasValue)
      if (batch.out_values) return Walk<true>(table, batch).run(begin, end);
    Walk<false>(table, batch).run(begin, end);
  }

 private:
  struct Block {
    u64 first;
    u32 n;
    u32 buckets[kBlock];
    u32 filters[kBlock];  // the bit of the key
    Word remainders[kBlock];
  };

  // The block that begins with an element. A block that is not full names bucket 0 for the elements that it lacks. (Out
  // of line: it is a loop of its own, and the four calls would be four long copies for the compiler.)
  [[gnu::noinline]] static void open(const QuotientTable& table, const QuotientBatch& b, u64 first, u64 end,
                                     Block& __restrict block) {
    const QuotientTable t = table;
    block.first = first;
    block.n = end - first < kBlock ? static_cast<u32>(end - first) : kBlock;
    const Word* const keys = pointer<const Word>(b.keys) + first;
    for (u32 k = 0; k < kBlock; k += sizeof(Line) / sizeof(Word)) prefetch(keys + kKeysAhead + k);
    for (u32 k = 0; k < block.n; ++k) {
      const Home<Word> home = D::home_of(t, permuted(t, keys[k]));
      block.buckets[k] = home.bucket;
      block.remainders[k] = home.remainder;
      block.filters[k] = D::filter_bit(home.remainder);
    }
    for (u32 k = block.n; k < kBlock; ++k) block.buckets[k] = 0;
  }

  template <bool kWithValues>
  struct Walk {
    const QuotientTable t;  // copies: no store to an answer changes them
    const QuotientBatch b;
    const bool far;              // the table is
    u32 list[kListed + kBlock];  // elements that may be guests elsewhere, and their homes: no key is read again
    u32 homes[kListed + kBlock];
    Word remainders[kListed + kBlock];
    u32 listed = 0;
    HeldAnswers<Value, kWithValues> answers;

    Walk(const QuotientTable& table, const QuotientBatch& batch)
        : t(table), b(batch), far(table.buckets * sizeof(Line) > kNearBytes), answers(batch, far) {}

    WARPHASH_FN void run(u64 begin, u64 end) {
      Block blocks[2];
      Block *seen = &blocks[0], *next = &blocks[1];
      open(t, b, begin, end, *next);
      answers.begin(begin);
      for (u32 k = 0; k < next->n; ++k) ask_for(next->buckets[k]);
      while (next->n) {
        Block* const done = seen;
        seen = next, next = done;
        open(t, b, seen->first + seen->n, end, *next);
        look_at(*seen, *next);
        const bool ends = !next->n, full = answers.is_full(next->first + kBlock);
        if (listed >= kListed || full || ends) look_for_guests();
        if (full || ends) answers.send(next->first);
      }
    }

    WARPHASH_FN void ask_for(u32 bucket) const { prefetch_bytes<sizeof(Line)>(line_at(t, bucket), far); }

    WARPHASH_FN void look_at(const Block& seen, const Block& next) {
      u32 length = listed;
      for (u32 k = 0; k < seen.n; ++k) {
        ask_for(next.buckets[k]);
        const u32 bucket = seen.buckets[k], element = static_cast<u32>(seen.first) + k;
        const bool found = look_up(bucket, seen.remainders[k], false, element);
        list[length] = element, homes[length] = bucket, remainders[length] = seen.remainders[k];
        length += !found & ((line_at(t, bucket)->words[0] & seen.filters[k]) != 0);
      }
      listed = length;
    }

    [[gnu::noinline]] void look_for_guests() {
      u32 buckets[kListed + kBlock];
      for (u32 k = 0; k < listed; ++k) {
        buckets[k] = D::second_of(t, D::first_of_range(t, homes[k]), {homes[k], remainders[k]});
        ask_for(buckets[k]);
      }
      for (u32 k = 0; k < listed; ++k) look_up(buckets[k], remainders[k], true, list[k]);
      listed = 0;
    }

    // Answers an element by a bucket; whether its key is there. There is no branch: a key that is in no slot gets the
    // value of the last one, masked out.
    WARPHASH_FN bool look_up(u32 bucket, Word remainder, bool guest, u32 element) const {
      const u32* const w = line_at(t, bucket)->words;
      const u32 hits = S::matches(w, remainder, guest);
      const bool found = hits != 0;
      if constexpr (kWithValues) {
        const Value mask = static_cast<Value>(0) - static_cast<Value>(found);
        const Value value = *S::value(w, first_bit(hits | 1u << (S::kSlots - 1)));
        answers.put_value(element, (value & mask) | (static_cast<Value>(b.default_value) & ~mask));
      }
      answers.put_flag(element, found);
      return found;
    }
  };
};

template <class D>
struct TaskOnCpu<FindInLines<D, LinesInPlace>> {
  using type = FindInPassesOverLines<D>;
};

}  // namespace warphash
