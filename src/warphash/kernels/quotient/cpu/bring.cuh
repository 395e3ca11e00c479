// `count` and `scatter` of quotient/bring.cuh by threads that share few counters.
//
// A thread first counts the elements of its part of the batch in counters of its own. Then it adds these counts to
// those of the ranges, one addition a range, and so learns where its elements go. If each element adds to the counter
// of its range, two threads pass each other the lines of the counters.
#pragma once
#include <cstring>

#include "core/cpu/schedule.cuh"
#include "quotient/bring.cuh"

namespace warphash {

constexpr u64 kOwnCounters = 1 << 14;  // 64 KB: half of a second-level cache at most

template <class D>
struct BringByThreads : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kWalks = true;
  struct Counts {
    u32 of[kOwnCounters];
  };

  static Word hash_at(const QuotientTable& t, const QuotientBatch& b, u64 i) {
    return permuted(t, key_at<S>(b, element_of(b, i)));
  }
  // Whether counters of its own save a thread more additions than they cost.
  static bool pays(const QuotientTable& t, u64 elements) { return t.ranges <= kOwnCounters && elements >= t.ranges; }
  static void count(const QuotientTable& t, const QuotientBatch& b, u64 begin, u64 end, Counts& counts) {
    std::memset(counts.of, 0, t.ranges * sizeof(u32));
    for (u64 i = begin; i < end; ++i) ++counts.of[D::range_of(t, hash_at(t, b, i))];
  }
};

template <class D>
struct CountByThreads : BringByThreads<D> {
  static void run(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    const QuotientTable t = table;  // local copies, as in core/cpu/schedule.cuh
    const QuotientBatch b = batch;
    if (!BringByThreads<D>::pays(t, end - begin)) return for_each_straight<CountInRanges<D>>(t, b, begin, end);
    typename BringByThreads<D>::Counts counts;
    BringByThreads<D>::count(t, b, begin, end, counts);
    for (u32 range = 0; range < t.ranges; ++range) {
      if (!counts.of[range] || fetch_add(counter_of(t, range), counts.of[range])) continue;
      pointer<u32>(b.touched)[fetch_add(&report_of(b)->winners, u64(1))] = range;
    }
  }
};

template <class D>
struct ScatterByThreads : BringByThreads<D> {
  using S = typename D::S;
  static void run(const QuotientTable& table, const QuotientBatch& batch, u64 begin, u64 end) {
    const QuotientTable t = table;
    const QuotientBatch b = batch;
    if (!BringByThreads<D>::pays(t, end - begin)) return for_each_straight<ScatterToParts<D>>(t, b, begin, end);
    typename BringByThreads<D>::Counts places;
    BringByThreads<D>::count(t, b, begin, end, places);
    for (u32 range = 0; range < t.ranges; ++range)
      if (places.of[range]) places.of[range] = ScatterToParts<D>::reserve(t, range, places.of[range]);
    for (u64 i = begin; i < end; ++i) {
      const typename S::Word hash = BringByThreads<D>::hash_at(t, b, i);
      ScatterToParts<D>::put(b, element_of(b, i), hash, places.of[D::range_of(t, hash)]++);
    }
  }
};

}  // namespace warphash
