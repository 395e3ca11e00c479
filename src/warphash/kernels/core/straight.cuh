// A task without a table to probe, counts or lists, of which an element is one straight piece of work: what it says besides
// what an element does.
#pragma once
#include "core/report.cuh"

namespace warphash {

template <class Table_, class Batch_>
struct Straight {
  using Table = Table_;
  using Batch = Batch_;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = false;
  static constexpr int kLists = 0;
  struct State {};
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}
};

}  // namespace warphash
