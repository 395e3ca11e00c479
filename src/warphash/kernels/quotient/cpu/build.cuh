// `build` (quotient/build.cuh) by a thread that has a range for itself.
//
//   1. The lines of the range begin vacant in memory of the thread's own, which stays in its cache.
//   2. The homes of a block of elements are computed together, by SIMD. An element sets the bit of its hash in a map. If
//      the bit was clear, no other element with this key has come before: the element takes the next slot of its home by
//      a counter, and compares with no key. If no key repeats, there is no map.
//   3. Elements whose bit was set, and those whose home was full, are inserted one by one, as in any batch.
//   4. The finished lines are written past the caches.
//
// Why. Lines in the memory of the table would be fetched and written back, though nothing of them is read. The map has
// more bits than that of a GPU, whose blocks have less memory, so fewer elements are left to step 3.
#pragma once
#include <cstring>

#include "quotient/build.cuh"
#include "quotient/cpu/apply.cuh"
#include "quotient/cpu/bring.cuh"

namespace warphash {

// The lines of a range in memory of the thread's own, for a table without keys.
struct LinesOnStage : LinesInPlace {
  template <class Word>
  struct Range {
    Line lines[kMostRangeBuckets];
  };
  template <class Word>
  WARPHASH_FN static void close(const Range<Word>& range, Line* lines, u32 size, u32, u32) {
    for (u32 k = 0; k < size; ++k) stream_line(lines + k, range.lines + k);
    end_streams();
  }
  // To a slot of its home that was never taken. Slots of whole 16-bit words are not read.
  template <class S>
  WARPHASH_FN static void put(u32* w, u32 slot, typename S::Word remainder) {
    if constexpr (S::kRemainderBits < S::kWordBits && (S::kRemainderBits + 2) % 16 == 0)
      S::put_beside(w, slot, remainder);
    else
      S::put(w, slot, remainder, false);
  }
};

// The map of step 2.
template <class S>
struct HashesSeen {
  static constexpr u32 kBits = S::kSlots > 10 ? 1u << 18 : S::kSlots > 4 ? 1u << 17 : 1u << 15;
  u32 words[kBits / 32];
};

template <class D>
struct BuildOnStage : RangeOfOneThread<D, LinesOnStage, HashesSeen<typename D::S>> {
  using S = typename D::S;
  using Seen = HashesSeen<S>;
  using Base = RangeOfOneThread<D, LinesOnStage, Seen>;
  using Word = typename S::Word;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::elements;
  using Base::Base;
  static constexpr u32 kBlock = 64;

  void run() {
    std::memset(m.range.lines, 0, Base::size * sizeof(Line));
    Base::lines = m.range.lines->words;
    Base::clear_heads(m);  // of the range before: the heads count the slots that are taken
    const u32 left = b.unique ? put_first_keys<true>() : put_first_keys<false>();
    for (u32 k = 0; k < left; ++k) Base::insert(list()[k], Base::brought(list()[k]));
    Base::finish();
  }

 private:
  u32* list() const { return pointer<u32>(b.left) + Base::start; }

  // Step 2. Returns how many elements are left.
  template <bool kUnique>
  WARPHASH_FN u32 put_first_keys() {
    if (!kUnique) std::memset(&m.before, 0, sizeof(m.before));
    u32 left = 0;
    for (u32 first = 0; first < elements; first += kBlock)
      left = put_first_keys<kUnique>(first, elements - first < kBlock ? elements - first : kBlock, left);
    return left;
  }
  // Sets a bit. Whether it was clear.
  WARPHASH_FN static bool is_first(u32* words, u32 at) {
    const u32 bit = 1u << at % 32, seen = words[at / 32];
    words[at / 32] = seen | bit;
    return !(seen & bit);
  }
  // Of `n` elements. Returns how many are left, with those that were before.
  template <bool kUnique>
  WARPHASH_FN u32 put_first_keys(u32 first, u32 n, u32 left) {
    const QuotientTable table = t;
    const Brought* const items = pointer<const Brought>(b.brought) + Base::start + first;
    const u32 first_bucket = Base::first_bucket;
    u32 buckets[kBlock], bits[kBlock];
    Word remainders[kBlock];
    for (u32 k = 0; k < n; ++k) {
      const Word hash = S::hash_of(items[k]);
      const auto home = D::home_of(table, hash);
      buckets[k] = home.bucket - first_bucket;
      remainders[k] = home.remainder;
      if (!kUnique) bits[k] = D::mixed(hash) % Seen::kBits;
    }
    const bool flags = b.out_flags && !flags_ahead(b);
    if (flags)
      for (u32 k = 0; k < n; ++k) Base::ask_for_flag(u64(Base::start) + first + k);
    u32* const words = m.before.words;
    u32* const taken = m.heads;
    u32* const lines = Base::lines;
    u32* const numbers = list();
    u32 changed = 0;
    for (u32 k = 0; k < n; ++k) {
      const u32 slot = taken[buckets[k]];
      if ((kUnique || is_first(words, bits[k])) && slot < S::kSlots) [[likely]] {
        taken[buckets[k]] = slot + 1;
        u32* const w = lines + buckets[k] * kLineWords;
        LinesOnStage::put<S>(w, slot, remainders[k]);
        if constexpr (S::kHasValue) *S::value(w, slot) = S::value_of(items[k]);
        if (flags) Base::flag(first + k, kChanged);
        ++changed;
      } else {
        numbers[left++] = first + k;
      }
    }
    Base::changed += changed;
    return left;
  }
};

// A build writes all lines of a range. Few elements are applied where the lines lie, which then are vacant
// (`builds_on_stage` of storage/quotient/route.py).
template <class D>
struct BuildOrApply : OneThreadARange<BuildOnStage<D>> {
  static void run(const QuotientTable& t, const QuotientBatch& b, u64 begin, u64 end) {
    if (2 * b.n < t.buckets) return OneThreadARange<ApplyAlone<D>>::run(t, b, begin, end);
    OneThreadARange<BuildOnStage<D>>::run(t, b, begin, end);
  }
};

template <class D>
struct TaskOnCpu<OneThreadARange<BuildRange<D, LinesInPlace>>> {
  using type = BuildOrApply<D>;
};

}  // namespace warphash
