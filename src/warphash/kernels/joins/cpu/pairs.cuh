// The pairs of a join on a CPU: each element with the rows of its key.
//
//   count_pairs  codes -> the pairs of each chunk
//   emit_pairs   codes -> the pairs, by elements and then by rows
//
// Layout. The rows of code c are rows[offsets[c]], …, rows[offsets[c + 1] - 1]; without offsets, the row is c itself. The
// pairs of chunk k lie at out_left[sums[k]] and out_right[sums[k]] and behind.
//
// Protocol.
//   1. count_pairs: a thread counts the pairs of the chunks that begin in its part of the batch.
//   2. The host sums up the counts, and takes as much memory as there are pairs.
//   3. emit_pairs: a thread writes the pairs of its chunks. No other thread writes there, so nothing is atomic.
//
// Why two passes. The codes are read twice, 4 bytes each, and the results have their exact size. One pass would write to
// memory for the most pairs there can be, and move those of all chunks but the first.
//
// A pair is written before it is known whether the element has one, and four pairs before it is known how many there
// are: what is too much is overwritten by the next element, and never lies behind the pairs of the chunk. A branch would
// often be mispredicted: 20 M pairs of 10 M elements, which have 0 to 10 each, took 91 ms, and 31 without (two threads
// of an EPYC).
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "joins/lists.cuh"

namespace warphash {

// A chunk of elements whose keys have one row each.
template <class Code>
struct SingleRows {
  static u64 count(const RowLists&, const PairBatch& b, u64 begin, u64 end) {
    if (b.keeps_all) return end - begin;
    const Code* const codes = pointer<const Code>(b.codes);
    u64 pairs = 0;
    for (u64 i = begin; i < end; ++i) pairs += codes[i] >= 0;
    return pairs;
  }

  template <class Out>
  static void emit(const RowLists&, const PairBatch& b, u64 begin, u64 end, u64 to, u64 behind) {
    const Code* const codes = pointer<const Code>(b.codes);
    Out* const left = pointer<Out>(b.out_left);
    Out* const right = pointer<Out>(b.out_right);
    if (behind - to == end - begin) {  // each element has a pair
      for (u64 i = begin; i < end; ++i) left[to + i - begin] = static_cast<Out>(i);
      for (u64 i = begin; i < end; ++i) right[to + i - begin] = static_cast<Out>(codes[i]);
      return;
    }
    for (u64 i = begin; i < end && to < behind; ++i) {
      left[to] = static_cast<Out>(i);
      right[to] = static_cast<Out>(codes[i]);
      to += codes[i] >= 0;
    }
  }
};

// A chunk of elements whose keys may have several rows.
template <class Code>
struct ManyRows {
  static constexpr u64 kAhead = 32;

  static u64 count(const RowLists& t, const PairBatch& b, u64 begin, u64 end) {
    const Code* const codes = pointer<const Code>(b.codes);
    u64 pairs = 0;
    for (u64 i = begin; i < end; ++i) {
      if (i + kAhead < end) prefetch(list_of(t, codes[i + kAhead]));
      pairs += pairs_of(t, b, codes[i]);
    }
    return pairs;
  }

  template <class Out>
  static void emit(const RowLists& t, const PairBatch& b, u64 begin, u64 end, u64 to, u64 behind) {
    const Code* const rows = pointer<const Code>(t.rows);
    const Code* const codes = pointer<const Code>(b.codes);
    Out* const left = pointer<Out>(b.out_left);
    Out* const right = pointer<Out>(b.out_right);
    for (u64 i = begin; i < end; ++i) {
      if (i + 2 * kAhead < end) prefetch(list_of(t, codes[i + 2 * kAhead]));
      if (i + kAhead < end) prefetch(rows + *list_of(t, codes[i + kAhead]));
      const Code* const from = rows + *list_of(t, codes[i]);
      const u64 count = pairs_of(t, b, codes[i]);
      u64 written = 0;
      if (to + kRowsAtOnce <= behind) {
        for (; written < kRowsAtOnce; ++written) {
          left[to + written] = static_cast<Out>(i);
          right[to + written] = static_cast<Out>(from[written]);
        }
      }
      for (; written < count; ++written) {
        left[to + written] = static_cast<Out>(i);
        right[to + written] = static_cast<Out>(from[written]);
      }
      to += count;
    }
  }
};

// Does something with the chunks that begin in a part of a batch: of(begin, end, number).
template <class Of>
WARPHASH_FN void for_chunks(const PairBatch& b, u64 begin, u64 end, Of of) {
  for (u64 chunk = (begin + b.length - 1) / b.length; chunk * b.length < end; ++chunk) {
    const u64 first = chunk * b.length;
    of(first, first + b.length < b.n ? first + b.length : b.n, chunk);
  }
}

struct CountPairs {
  template <class Rows>
  static void run(const RowLists& t, const PairBatch& b, u64 begin, u64 end) {
    u64* const sums = pointer<u64>(b.sums);
    for_chunks(b, begin, end,
               [&](u64 first, u64 behind, u64 chunk) { sums[chunk] = Rows::count(t, b, first, behind); });
  }
};

struct EmitPairs {
  template <class Rows>
  static void run(const RowLists& t, const PairBatch& b, u64 begin, u64 end) {
    b.out_bytes == 4 ? emit<Rows, i32>(t, b, begin, end) : emit<Rows, i64>(t, b, begin, end);
  }

 private:
  template <class Rows, class Out>
  static void emit(const RowLists& t, const PairBatch& b, u64 begin, u64 end) {
    const u64* const sums = pointer<const u64>(b.sums);
    for_chunks(b, begin, end, [&](u64 first, u64 behind, u64 chunk) {
      Rows::template emit<Out>(t, b, first, behind, sums[chunk], sums[chunk + 1]);
    });
  }
};

// A task over codes of any width, and keys with one row or more.
template <class OfRows>
struct OverRowLists {
  using Table = RowLists;
  using Batch = PairBatch;
  static constexpr bool kWalks = true;
  static void run(const RowLists& lists, const PairBatch& batch, u64 begin, u64 end) {
    const RowLists t = lists;
    const PairBatch b = batch;
    t.row_bytes == 4 ? over<i32>(t, b, begin, end) : over<i64>(t, b, begin, end);
  }

 private:
  template <class Code>
  static void over(const RowLists& t, const PairBatch& b, u64 begin, u64 end) {
    t.offsets ? OfRows::template run<ManyRows<Code>>(t, b, begin, end)
              : OfRows::template run<SingleRows<Code>>(t, b, begin, end);
  }
};

}  // namespace warphash
