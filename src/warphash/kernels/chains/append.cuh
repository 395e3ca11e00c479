// Appends a pair to its list, whatever the list holds: for the inserts of a MultiMap, and for lists that are made anew.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), section III-B.
//
//   append       the pairs of a batch, in any order
//   append_runs  the same; the pairs of a key that follow each other in the batch keep their order
//
// A list is as long as its keys repeat, so each has a tail.
//
// Layout: ChainTable::tails has a node for each list such that all nodes before it are full, or kNowhere. No slot
// becomes vacant again, so a tail stays true, whichever lane stores last. When nodes are given back, the host forgets
// all tails. Protocol: a walk starts at the first node, as every other one. After kNear nodes it jumps to the tail.
// From there on, each step stores the node as the new tail. So short lists have no tail, and n copies of a key are
// appended in n steps, not in n^2. Memory order: relaxed. The number of a node publishes nothing: the node was linked
// before, and a lane reads its number from the link or from the tail.
#pragma once
#include "chains/place.cuh"

namespace warphash {

// The walk of a pair to the end of its list.
template <class S>
struct Way {
  static constexpr u32 kNear = 8;

  u32 list, node, nodes;

  WARPHASH_FN static Way from(u32 first) { return {first, first, 0}; }

  // The walk goes on to `next`, if that is another node; or jumps to the tail, which `next` becomes then.
  WARPHASH_FN void go_on(const ChainTable& t, u32& next) {
    if (!t.tails || next == node) return;
    u32* tail = pointer<u32>(t.tails) + list;
    if (++nodes > kNear) {
      store_relaxed(tail, next);
    } else if (nodes == kNear) {
      const u32 far = load_relaxed(tail);
      if (far != kNowhere) next = far;
    }
    node = next;
  }
};

template <class D>
struct Append : PlaceInList<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  struct State : PlaceInList<D>::State {
    Way<S> way;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const bool pending = PlaceInList<D>::start(t, b, i, s);
    s.way = Way<S>::from(s.placement.bucket);
    return pending;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    s.outcome = D::append(t, s.placement, seen);
    s.way.go_on(t, s.placement.bucket);
    return s.outcome == Placed::kInserted;
  }
  WARPHASH_FN static bool supply(const Table& t, State& s, u32 slab) {
    const bool done = PlaceInList<D>::supply(t, s, slab);
    s.way.go_on(t, s.placement.bucket);
    return done;
  }
};

// Appends the pairs of each run, the elements with one key that follow each other in the batch, in the order of the
// batch: a lane takes a whole run, pair by pair, from its first element on. The lanes of the other elements have nothing
// to do. So a batch that is grouped by key adds the pairs of every key in their order. A run that finds no node leaves
// all of its pairs from there on without one, and is a run again when these elements are launched once more.
template <class D>
struct AppendRuns : Append<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  struct State : Append<D>::State {
    u32 at;  // number of the element under way in this launch
    u32 placed;
  };
  WARPHASH_FN static bool continues(const Batch& b, u64 i) {
    return key_at<S>(b, element_of(b, i)) == key_at<S>(b, element_of(b, i - 1));
  }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.at = static_cast<u32>(i);
    s.placed = 0;
    s.outcome = Placed::kInserted;
    s.placement.spare = kNoSlab;
    return (i == 0 || !continues(b, i)) && Append<D>::start(t, b, i, s);
  }
  // Goes to the next element of the run; false if there is none.
  WARPHASH_FN static bool go_on(const Batch& b, State& s) {
    const u64 length = b.count ? *pointer<const u64>(b.count) : b.n;
    return ++s.at < length && continues(b, s.at);
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (!Append<D>::step(t, b, s, seen)) return false;
    set_flag(b, s.element, kChanged);
    ++s.placed;
    if (!go_on(b, s)) return true;
    const u32 spare = s.placement.spare;
    Append<D>::start(t, b, s.at, s);
    s.placement.spare = spare;
    return false;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    D::end(t, s.placement);
    tally.changed += s.placed;
    if (s.outcome != Placed::kNoRoom) return;
    do {
      set_flag(b, element_of(b, s.at), kUnplaced);
      atomic_add(&report_of(b)->unplaced, 1ull);
    } while (go_on(b, s));
  }
};

}  // namespace warphash
