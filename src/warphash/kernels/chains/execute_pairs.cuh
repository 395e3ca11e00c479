// A batch of finds, inserts and erases that run beside each other on lists that hold a key several times (MultiMap).
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), sections III-B, IV-A and VI-C.
//
//   find     the value of the first pair of its key, which is the least recent one
//   insert   adds a pair, whatever the list holds; kUnplaced where there was no node
//   erase    turns the first pair of its key into a tombstone
// out_flags and out_values are those of chains/execute.cuh. An assign, and a byte that is no Operation, do nothing.
//
// To a find and an erase, the pairs of a key are a queue: only its first pair is looked at. An insert adds a pair at the
// end.
//
// Protocol. An element walks from the first slot of the list on. Slots are filled in order, keep a pair until the pair is
// erased, and are not used twice (chains/slab_slots.cuh).
//   find, erase   Go on to the next node only where all slots of a node were used and none holds the key. If a node shows
//                 the key behind a slot that looked empty, read the node again: the slot was filled meanwhile, and may
//                 hold the key too. A slot that is empty, or the end of the list, ends the search.
//   insert        Swap the pair into the first empty slot. A long list is entered at its tail (chains/append.cuh).
//
// Consistency: linearizable. Operations of one launch overlap, so it is enough that one order of all of them explains
// every answer and what the table holds in the end. This order is made in two steps, for each key k:
//   1. insert    when the pair is swapped into an empty slot. All slots before were used and all behind are empty, so
//                the pairs of k come in the order of their slots.
//      find      that found: when the pair was read, whole. All slots before it had been used and did not hold k, so
//                they never hold k again: the pair was the first one.
//      erase     that erased: when the pair that was read was swapped for a tombstone. The pair was the first one, as
//                for a find. If the swap fails, the erase reads again.
//   2. find, erase that missed. Each read every slot that held k when the launch began, and k was in none of them. So
//      each pair that k had then is erased in this launch. Now move every insert of k from its place in step 1 to the
//      moment when its pair becomes the first one of k, or to the end if the pair never does. No operation sees a pair
//      before that moment, so no answer changes. In this order k has no pair right after the last of its old pairs is
//      erased; if there was none, at the beginning. All misses of k come there.
// An operation that counted, or erased, all pairs of a key would see pairs that are not the first, so step 2 would not
// hold: there is none here.
//
// Memory order: relaxed. No answer depends on the order in which changes of two slots become visible: step 1 reads only
// that a slot was used, which stays true, and step 2 only what slots no longer hold.
#pragma once
#include "chains/append.cuh"
#include "chains/execute.cuh"

namespace warphash {

template <IsDesign D>
struct ExecutePairs : Execute<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  struct State : Execute<D>::State {
    Way<S> way;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const bool known = Execute<D>::start(t, b, i, s);
    s.way = Way<S>::from(s.placement.bucket);
    return known && s.operation != kAssignKey;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    const bool inserts = s.operation == kInsertKey;
    const bool vacant = seen.vacant < S::kDataSlots, there = seen.hit >= 0 && !inserts;
    if (there && seen.vacant < seen.hit) return false;
    if (there && s.operation == kFindKey) {
      s.placement.hand = seen.item;
      s.flag = 1;
      return true;
    }
    if (there || (inserts && vacant)) {
      // One swap for both kinds of operations, as in chains/execute.cuh.
      typename S::Item* slot = S::at(t, s.placement.bucket) + (there ? seen.hit : seen.vacant);
      const typename S::Item was = there ? seen.item : S::empty();
      const typename S::Item old = compare_exchange(slot, was, inserts ? s.placement.hand : S::tombstone());
      s.flag = old.key == was.key && old.payload() == was.payload();
      return s.flag;
    }
    if (!inserts && (vacant || seen.next == kNoSlab)) return true;
    s.wants = D::extend(t, s.placement, seen) == Placed::kWantsSlab;
    if (inserts) s.way.go_on(t, s.placement.bucket);
    return false;
  }
  WARPHASH_FN static bool supply(const Table& t, State& s, u32 slab) {
    const bool done = Execute<D>::supply(t, s, slab);
    s.way.go_on(t, s.placement.bucket);
    return done;
  }
};

}  // namespace warphash
