// `place_next` and `migrate` of a CPU: one task, which the batch tells where its pairs are. They differ in how an element
// starts, and share the rest, so the compiler takes it once.
#pragma once
#include "buckets/insert.cuh"
#include "core/cpu/schedule.cuh"

namespace warphash {

template <class D>
struct PlaceNextOrMigrate : Place<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using typename Place<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    return b.source_slots ? Migrate<D>::start(t, b, i, s) : PlaceNext<D>::start(t, b, i, s);
  }
};

template <class D>
struct TaskOnCpu<PlaceNext<D>> {
  using type = PlaceNextOrMigrate<D>;
};
template <class D>
struct TaskOnCpu<Migrate<D>> {
  using type = PlaceNextOrMigrate<D>;
};

}  // namespace warphash
