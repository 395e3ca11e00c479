// `settle` of a CPU: the state of an element is written member by member.
//
// Why. The compiler builds a state that is assigned as a whole beside its place, by stores of 4 and 8 bytes, and copies it
// by loads of 16. Such a load waits until the stores before it have reached the cache.
#pragma once
#include "buckets/insert.cuh"
#include "core/cpu/schedule.cuh"

namespace warphash {

template <class D>
struct SettleByMembers : Settle<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Settle<D>::State;
  using typename Settle<D>::Outcome;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.probe.named = Named<S>::of(key_at<S>(b, s.element));
    s.probe.function = 0;
    s.probe.bucket = bucket_of(t, s.probe.named, 0);
    s.value = value_at<S>(b, s.element);
    s.absent = s.room = false;
    s.outcome = Outcome::kOpen;
    return true;
  }
};

template <class D>
struct TaskOnCpu<Settle<D>> {
  using type = SettleByMembers<D>;
};

}  // namespace warphash
