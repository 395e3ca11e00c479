// What the threads of a launch tell the host and each other: counts, and that a pair is displaced. A displaced pair was
// in a slot, or should be, and is in none.
//
// Layout: struct Report (core/abi.cuh) is a line of 64 bytes with the lengths of lists and with rare counts; then lines
// of counts, whose sums are the counts; then lines that each hold the same signal. The number of a thread chooses its
// lines.
//
// Why lines. Every block adds to a count, and every warp asks whether a pair is displaced. An address that all of them
// use is a queue: with one for both, classic cuckoo inserts ran at 6.9 G/s on an H200, with 32 at 7.7, and with counts
// and signals in lines of their own at 7.9 (docs/performance/insert.md).
//
// Suspension. The thread that is left with a displaced pair sets every signal, then goes on. A thread that starts later
// evicts nothing. So there are at most as many displaced pairs as threads under way: kDisplacedCapacity of them.
// Relaxed: the word publishes nothing, and a thread that reads it late counts as under way.
#pragma once
#include "core/concepts.cuh"

namespace warphash {

WARPHASH_FN Report* report_of(const Launch& b) { return reinterpret_cast<Report*>(b.report); }

WARPHASH_FN CountLine& count_line(const Launch& b, u64 number) { return report_of(b)->counts[number % kReportLines]; }

// How many keys the elements of a thread added or erased in each subtable. A lane of a warp notes the subtable of its
// last element, and the warp counts the notes (core/gpu/schedule.cuh).
template <bool kInWarps>
struct PerSubtable {
  u32 last = ~0u, mine = 0;
  WARPHASH_FN void add(u32 subtable) { last = subtable; }
};
template <>
struct PerSubtable<false> {
  u64 count[kMostSubtables] = {};
  WARPHASH_FN void add(u32 subtable) { ++count[subtable]; }
};

// What the elements of a thread did.
struct Tally {
  Tallied changed = 0;
  Tallied probes = 0;
  Tallied mismatches = 0;
  Tallied erased = 0;
  PerSubtable<(kWarpLanes > 1)> placed;
};

// Counts `number` keys of a subtable.
WARPHASH_FN void count_placed(CountLine& line, u32 subtable, u64 number) {
  atomic_add(&line.placed[subtable / 2], number << (32 * (subtable % 2)));
}

WARPHASH_FN bool suspended(const Launch& b, u64 number) {
  return load_relaxed(&report_of(b)->signals[number % kReportLines].suspended) != 0;
}

WARPHASH_FN void suspend_others(const Launch& b) {
  for (SignalLine& line : report_of(b)->signals) store_relaxed(&line.suspended, u64(1));
}

}  // namespace warphash
