// A batch of finds, inserts, assigns and erases that run beside each other, inside a warp too, on a table of lists.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), sections IV-A and VI-C.
//
// out_flags: what a find found, an insert or assign added, an erase erased; kUnplaced where there was no node for a
// key. out_values: the value that a find found, otherwise default_value. A byte that is no Operation does nothing.
//
// Consistency: linearizable. There is an order of all operations of the launch, the same for all keys, in which each
// does at one moment what its answer says:
//   find     found: when the pair was read, whole. Not found: a slot that holds k keeps k until k is erased, no slot is
//            used twice, and lists only get longer. If k had been there from beginning to end, k had been in one slot
//            of a node that this find read. So at some moment k was not there.
//   insert   added: when the pair was swapped into an empty slot. All slots before that one were read, and were neither
//            empty nor k's, so they never hold k again; all slots behind it were empty. Present: when k was read.
//   assign   as an insert; or when the pair that was read, whole, was swapped for the new pair. If the swap fails, the
//            assign reads again.
//   erase    when the pair that was read was swapped for a tombstone. If the swap fails, the erase reads again. Absent:
//            as a find.
// (In the paper's Figure 2 REPLACE expects an empty pair where the key is, line 35, and DELETE writes to a lane that it
// has not chosen, line 59.)
//
// Memory order: relaxed. All threads agree on the order of the changes of each slot, and an operation changes one slot.
// Slots before the first empty one never go back to empty. So a thread that sees slots filled further on reads the
// slots before them in the same or in a later state, and no order among slots is needed.
#pragma once
#include "chains/slab_allocator.cuh"
#include "core/bulk.cuh"

namespace warphash {

template <IsDesign D>
struct Execute : TakesSlabs {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = true, kReads = true, kSuspends = false, kCounts = true;
  static constexpr bool kErases = true, kRefills = true;
  static constexpr bool kFrozen = false, kVacancy = true;
  static constexpr int kLists = 0;
  static constexpr int kPartBytes = 128;
  struct State {
    typename D::Placement placement;  // of a find: its value is the one that was found
    u32 element;
    u8 operation;
    u8 flag;
    bool wants;
    WARPHASH_FN u32 bucket() const { return placement.bucket; }
    WARPHASH_FN Word key() const { return placement.hand.key; }
  };
  WARPHASH_FN static i32 region(const Table&) { return 0; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    // Plain loads and stores: the lanes of a warp come to a line of the batch's arrays one after the other, so the
    // cache is of use. Every operation reads a value, so that no load waits for the kind of the operation.
    s.element = element_of(b, i);
    s.operation = pointer<const u8>(b.operations)[s.element];
    const Word value = S::kHasValue && b.values ? pointer<const Word>(b.values)[s.element] : Word(0);
    s.placement = D::start(Probe<S>::start(t, pointer<const Word>(b.keys)[s.element]), value, 0);
    s.flag = 0;
    s.wants = false;
    return s.operation <= kEraseKey;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    const bool there = seen.hit >= 0, writes = s.operation == kInsertKey || s.operation == kAssignKey;
    if (there && s.operation == kFindKey) {
      s.placement.hand = seen.item;
      s.flag = 1;
      return true;
    }
    if (there && (s.operation == kInsertKey || (s.operation == kAssignKey && !S::kHasValue))) return true;
    if (there || (writes && seen.vacant < S::kDataSlots)) {
      // One swap for all kinds of operations: swaps in separate branches would run one after the other.
      typename S::Item* slot = S::at(t, s.placement.bucket) + (there ? seen.hit : seen.vacant);
      const typename S::Item was = there ? seen.item : S::empty();
      const typename S::Item old = compare_exchange(slot, was, writes ? s.placement.hand : S::tombstone());
      const bool swapped = old.key == was.key && old.payload() == was.payload();
      s.flag = swapped && !(there && writes);
      return swapped;
    }
    if (seen.next == kNoSlab && !writes) return true;
    s.wants = D::extend(t, s.placement, seen) == Placed::kWantsSlab;
    return false;
  }
  WARPHASH_FN static bool wants_slab(const State& s) { return s.wants; }
  WARPHASH_FN static bool supply(const Table& t, State& s, u32 slab) {
    s.wants = false;
    if (slab != kNoSlab)
      D::link(t, s.placement, slab);
    else
      s.flag = kUnplaced;
    return slab == kNoSlab;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    D::end(t, s.placement);
    const bool writes = s.operation == kInsertKey || s.operation == kAssignKey;
    tally.changed += s.flag == kChanged && writes;
    tally.erased += s.flag == kChanged && s.operation == kEraseKey;
    if (s.flag == kUnplaced) atomic_add(&report_of(b)->unplaced, 1ull);
    const bool found = s.operation == kFindKey && s.flag;
    if (S::kHasValue && b.out_values)
      pointer<Word>(b.out_values)[s.element] = found ? s.placement.hand.payload() : static_cast<Word>(b.default_value);
    if (b.out_flags) pointer<u8>(b.out_flags)[s.element] = s.flag;
  }
};

}  // namespace warphash
