// `count` and `scatter` of quotient/bring.cuh by threads that share few counters.
//
//   count     A thread counts the elements of its part of the batch in counters of its own. Then it adds these counts to
//             those of the ranges, one addition a range. If each element adds to the counter of its range, two threads
//             pass each other the lines of the counters.
//   scatter   A thread counts again, and so learns where its elements go in each range. It gathers the elements of a
//             range until they fill a line of memory, and writes the line past the caches. Elements that are written one
//             by one fetch the line that they overwrite. If a build follows, it flags the elements as well.
#pragma once
#include <cstring>

#include "core/cpu/line_writer.cuh"
#include "core/cpu/schedule.cuh"
#include "quotient/bring.cuh"

namespace warphash {

// Whether elements may be flagged as changed ahead, in the order of the batch. What follows then flags those alone that
// are not. A flag for each element in the order of ranges takes as long as the rest of a build. Values that are added
// have flags that tell an interrupted host what was added (storage/quotient/store.py).
WARPHASH_FN bool may_flag_ahead(const QuotientBatch& b) { return b.out_flags && (b.op == kKeep || b.op == kReplace); }
// Whether `scatter` does so.
WARPHASH_FN bool flags_ahead(const QuotientBatch& b) { return b.left && may_flag_ahead(b); }

template <class D>
struct BringByThreads : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64;

  // The hashes and ranges of elements in a row.
  struct Block {
    u32 n;
    u32 ranges[kBlock];
    Word hashes[kBlock];

    // (Out of line: `scatter` has two loops around it.)
    [[gnu::noinline]] void read(const QuotientTable& table, const QuotientBatch& b, u64 first, u64 end) {
      const QuotientTable t = table;
      n = end - first < kBlock ? static_cast<u32>(end - first) : kBlock;
      if (b.indices) {
        for (u32 k = 0; k < n; ++k) hashes[k] = key_at<S>(b, element_of(b, first + k));
        hash(t, hashes);
      } else {
        hash(t, pointer<const Word>(b.keys) + first);
      }
    }

   private:
    // (A loop of its own is one that the compiler vectorizes.)
    WARPHASH_FN void hash(const QuotientTable& t, const Word* keys) {
      for (u32 k = 0; k < n; ++k) {
        hashes[k] = permuted(t, keys[k]);
        ranges[k] = D::range_of(t, hashes[k]);
      }
    }
  };

  // Whether counters of its own save a thread more additions than they cost.
  static bool pays(const QuotientTable& t, u64 elements) { return elements >= t.ranges; }
  static void count(const QuotientTable& t, const QuotientBatch& b, u64 begin, u64 end, u32* counters) {
    Block block;
    for (u64 i = begin; i < end; i += kBlock) {
      block.read(t, b, i, end);
      for (u32 k = 0; k < block.n; ++k) ++counters[block.ranges[k]];
    }
  }
};

// A design as far as `count` and `scatter` look at it, which read no bucket. So tables of all forms share what is compiled
// for them; for `count`, values make no difference, either.
template <class Word, u32 kValueBytes>
struct WithoutForm : OverQuotients, Places<LineLayout<Word, kValueBytes, 1>> {
  using S = LineLayout<Word, kValueBytes, 1>;
};

template <class D>
struct CountByThreads : BringByThreads<D> {
  using Base = BringByThreads<D>;
  static void run(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    const QuotientTable t = table;  // local copies, as in core/cpu/schedule.cuh
    const QuotientBatch b = batch;
    Counters counters(Base::pays(t, end - begin) ? t.ranges : 0);
    if (!Base::pays(t, end - begin) || !counters.begin()) return for_each_straight<CountInRanges<D>>(t, b, begin, end);
    u32* const counts = counters.begin();
    Base::count(t, b, begin, end, counts);
    for (u32 range = 0; range < t.ranges; ++range) {
      if (!counts[range] || fetch_add(counter_of(t, range), counts[range])) continue;
      pointer<u32>(b.touched)[fetch_add(&report_of(b)->winners, u64(1))] = range;
    }
  }
};

template <class D>
struct ScatterByThreads : BringByThreads<D> {
  using Base = BringByThreads<D>;
  using S = typename D::S;
  using Brought = typename S::Brought;

  static void run(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    if (flags_ahead(batch)) flag_all(batch, begin, end);
    if (!Base::pays(table, end - begin) || !run_by_lines(table, batch, begin, end))
      for_each_straight<ScatterToParts<D>>(table, batch, begin, end);
  }

 protected:
  static void flag_all(const QuotientBatch& b, u64 begin, u64 end) {
    if (!b.indices) return (void)std::memset(pointer<u8>(b.out_flags) + begin, kChanged, end - begin);
    for (u64 i = begin; i < end; ++i) set_flag(b, element_of(b, i), kChanged);
  }
  // False if there is no memory for lines.
  static bool run_by_lines(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    const QuotientTable t = table;
    const QuotientBatch b = batch;
    const bool numbered = b.out_flags != 0;
    Counters first_places(t.ranges), next_places(t.ranges);
    u32 *const firsts = first_places.begin(), *const places = next_places.begin();
    LineWriter<Brought> brought(pointer<Brought>(b.brought), firsts, t.ranges);
    LineWriter<u32> numbers(pointer<u32>(b.numbers), firsts, numbered ? t.ranges : 1);
    if (!firsts || !places || !brought.has_memory() || !numbers.has_memory()) return false;
    Base::count(t, b, begin, end, firsts);
    for (u32 range = 0; range < t.ranges; ++range)
      if (firsts[range]) places[range] = firsts[range] = ScatterToParts<D>::reserve(t, range, firsts[range]);
    bring(t, b, begin, end, places, brought, numbers);
    return true;
  }

 protected:
  // Writes elements to the places of their ranges, which it counts on.
  static void bring(const QuotientTable& t, const QuotientBatch& b, u64 begin, u64 end, u32* places,
                    LineWriter<Brought>& brought, LineWriter<u32>& numbers) {
    const bool numbered = b.out_flags != 0;
    typename Base::Block block;
    for (u64 i = begin; i < end; i += Base::kBlock) {
      block.read(t, b, i, end);
      for (u32 k = 0; k < block.n; ++k) {
        const u32 element = element_of(b, i + k), range = block.ranges[k], place = places[range]++;
        const typename S::Value value = b.values ? S::value_at(b, element) : 0;
        brought.put(range, place, Brought::make(block.hashes[k], value));
        if (numbered) numbers.put(range, place, element);
      }
    }
    for (u32 range = 0; range < t.ranges; ++range) {
      brought.flush(range, places[range]);
      if (numbered) numbers.flush(range, places[range]);
    }
    end_streams();
  }
};

template <class D>
using CountForAllForms = CountByThreads<WithoutForm<typename D::S::Word, 0>>;
template <class D>
using ScatterForAllForms = ScatterByThreads<WithoutForm<typename D::S::Word, 4 * D::S::kValueWords>>;

}  // namespace warphash
