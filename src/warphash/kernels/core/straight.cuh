// A base for tasks whose elements are one straight piece of work: no probes, no counts and no lists. Such a task adds
// its start().
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
