// Brings the elements of a batch to their ranges, one by one. (On a GPU, a large batch goes in passes:
// quotient/gpu/partition.cuh.)
//
//   count     counts the elements of each range, and lists the ranges that have some
//   reserve   gives each listed range a part of `brought` for its elements; the elements are the listed ranges
//   scatter   copies the hash and the value of each element to the part of its range, and its number in the batch if
//             there is an array of flags
//
// The counter of a range counts its elements, starts again at `reserve`, and hands out places to `scatter`. So it is
// the number of elements again when `apply` reads it, and `apply` sets it to 0.
//
// Why. The places of a range are written one after another, so the second-level cache of a GPU gathers whole sectors.
// No part of memory has a fixed capacity: a range may get all elements. No step walks over the ranges of the table, so
// a batch of a few keys costs a few counters.
//
// Memory order: relaxed. The end of a kernel publishes what it wrote to the next.
#pragma once
#include "core/bulk.cuh"
#include "core/straight.cuh"
#include "quotient/place.cuh"

namespace warphash {

WARPHASH_FN u32* counter_of(const QuotientTable& t, u32 range) { return in_global(pointer<u32>(t.counters) + range); }

// ---- count
template <class D>
struct CountInRanges : Straight<QuotientTable, QuotientBatch> {
  using S = typename D::S;
  static constexpr bool kCounts = true;
  static constexpr int kLists = 1;
  struct State {
    u32 range;
    bool first;  // of its range
  };
  WARPHASH_FN static bool start(const QuotientTable& t, const QuotientBatch& b, u64 i, State& s) {
    s.range = D::range_of(t, permuted(t, key_at<S>(b, element_of(b, i))));
    s.first = fetch_add(counter_of(t, s.range), 1u) == 0;
    return false;
  }
  WARPHASH_FN static void finish(const QuotientTable&, const QuotientBatch&, u64, State&, bool, Tally&) {}
  using Entry = u32;
  WARPHASH_FN static u64* length(const QuotientBatch& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.first; }
  WARPHASH_FN static Entry entry(const State& s) { return s.range; }
  WARPHASH_FN static void enter(const QuotientBatch& b, int, u64 place, Entry e) { pointer<u32>(b.touched)[place] = e; }
};

// ---- reserve
template <class D>
struct ReserveForRanges : Straight<QuotientTable, QuotientBatch> {
  using typename Straight<QuotientTable, QuotientBatch>::State;
  WARPHASH_FN static bool start(const QuotientTable& t, const QuotientBatch& b, u64 i, State&) {
    const u32 range = pointer<const u32>(b.touched)[i];
    u32* const counter = counter_of(t, range);
    const u64 start = fetch_add(&report_of(b)->losers, static_cast<u64>(*counter));
    pointer<u32>(t.starts)[range] = static_cast<u32>(start);
    *counter = 0;
    return false;
  }
};

// ---- scatter
template <class D>
struct ScatterToParts : Straight<QuotientTable, QuotientBatch> {
  using S = typename D::S;
  using Word = typename S::Word;
  using typename Straight<QuotientTable, QuotientBatch>::State;
  WARPHASH_FN static bool start(const QuotientTable& t, const QuotientBatch& b, u64 i, State&) {
    const u32 element = element_of(b, i);
    const Word hash = permuted(t, key_at<S>(b, element));
    put(b, element, hash, reserve(t, D::range_of(t, hash), 1));
    return false;
  }
  // The first of `n` places for elements of a range.
  WARPHASH_FN static u32 reserve(const QuotientTable& t, u32 range, u32 n) {
    return pointer<const u32>(t.starts)[range] + fetch_add(counter_of(t, range), n);
  }
  WARPHASH_FN static void put(const QuotientBatch& b, u32 element, Word hash, u32 place) {
    const typename S::Value value = b.values ? S::value_at(b, element) : 0;
    pointer<typename S::Brought>(b.brought)[place] = S::Brought::make(hash, value);
    if (b.out_flags) pointer<u32>(b.numbers)[place] = element;
  }
};

}  // namespace warphash
