// The insert into lists: place (core/insert.cuh), of which an element may take a node from the pool.
#pragma once
#include "chains/slab_allocator.cuh"
#include "core/insert.cuh"

namespace warphash {

template <class D>
struct PlaceInList : Place<D>, TakesSlabs {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using typename Place<D>::State;
  WARPHASH_FN static bool wants_slab(const State& s) { return s.outcome == Placed::kWantsSlab; }
  WARPHASH_FN static bool supply(const Table& t, State& s, u32 slab) {
    s.outcome = slab == kNoSlab ? Placed::kNoRoom : Placed::kGoesOn;
    if (slab != kNoSlab) D::link(t, s.placement, slab);
    return slab == kNoSlab;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64 i, State& s, bool live, Tally& tally) {
    if (live) D::end(t, s.placement);
    Place<D>::finish(t, b, i, s, live, tally);
  }
};

}  // namespace warphash
