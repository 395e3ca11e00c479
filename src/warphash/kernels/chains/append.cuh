// Appends a pair to its list, whatever the list holds: for the inserts of a MultiMap, and for lists that are made anew.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), section III-B.
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

}  // namespace warphash
