// Inserts that take erased slots again, for lists that hold a key several times (MultiMap, slab's reuse_erased).
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), section III-B: with duplicates allowed, a deleted slot
// may be used again.
//
//   append_reusing    as append (chains/append.cuh)
//   execute_reusing   as execute_pairs (chains/execute_pairs.cuh)
//
// Protocol. At each node of its walk, an insert first swaps its pair for a tombstone, if there is one, and otherwise goes
// on as every insert. The host forgets the tails of all lists before a batch that inserts, if pairs were erased since.
// So walks begin at the first node again, and meet the erased slots. A tail that is stored meanwhile may pass by slots
// that the same launch erases; these are met in the next one.
// Departure. In the paper an erased slot is marked as empty. Here it stays a tombstone until it is taken. So the slots
// in front of the first empty one are still those that were used, and every other kernel on lists is as it was.
//
// Order. A pair may come into a slot in front of older pairs of its key: the values of a key come in any order.
//
// Consistency of execute_reusing: linearizable. A find reads, and an erase takes, some pair of its key.
//   1. Every operation but a miss happens when it reads or swaps its pair, which is in the table at that moment.
//   2. A find or erase that missed read every slot that held k when the launch began, and k was in none of them. So each
//      pair that k had then is erased in this launch. Now let all operations on these old pairs come first, in their
//      order; then the misses of k; then the inserts of k, and the operations on what they inserted, in their order. No
//      answer changes, since an operation on one pair does not depend on any other pair.
// Memory order: relaxed, as in chains/execute_pairs.cuh.
#pragma once
#include "chains/execute_pairs.cuh"

namespace warphash {

// Swaps the pair in hand for a tombstone of the node that the walk has come to; false if there is none.
template <class D>
WARPHASH_FN bool take_erased(const typename D::Table& t, const typename D::Placement& p) {
  using S = typename D::S;
  typename S::Item* node = S::at(t, p.bucket);
  for (int j = 0; j < S::kDataSlots; ++j)
    if (load_slot<false>(node + j).key == S::kTombstone &&
        compare_exchange(node + j, S::tombstone(), p.hand).key == S::kTombstone)
      return true;
  return false;
}

template <class D>
struct AppendReusing : Append<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Append<D>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (!take_erased<D>(t, s.placement)) return Append<D>::step(t, b, s, seen);
    s.outcome = Placed::kInserted;
    return true;
  }
};

template <class D>
struct ExecuteReusing : ExecutePairs<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename ExecutePairs<D>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (s.operation != kInsertKey || !take_erased<D>(t, s.placement)) return ExecutePairs<D>::step(t, b, s, seen);
    s.flag = kChanged;
    return true;
  }
};

}  // namespace warphash
