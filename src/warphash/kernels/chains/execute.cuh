// A batch of finds, inserts, assigns and erases that run beside each other, inside a warp too, on a table of lists.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), sections IV-A and VI-C.
//
// out_flags: what a find found, an insert or assign added, an erase erased; kUnplaced where there was no node for a key.
// out_values: what a find found, otherwise default_value. An operation that is none does nothing.
//
// Consistency: linearizable. There is an order of all operations of the launch, the same for all keys, in which each does
// at one moment what its answer says:
//   find     found: when its pair was read, whole. Not found: a slot that holds k keeps it until k is erased, no slot is
//            used twice, and lists only get longer. Had k been there from beginning to end, it had been in one slot of a
//            node that this find read; so at some moment k was not there.
//   insert   added: when its pair was swapped into an empty slot. All slots before it were read, and were neither empty nor
//            k's, so they never hold k again; all behind it were empty. Present: when k was read.
//   assign   as an insert; or when it swapped the pair that it had read, whole, for its own. Failing, it reads again.
//   erase    when it swapped the pair that it had read for a tombstone. Failing, it reads again. Absent: as a find.
// (In the paper's Figure 2 REPLACE expects an empty pair where the key is, line 35, and DELETE writes to a lane that it has
// not chosen, line 59.)
//
// Memory order: relaxed. An order that all threads agree on needs no more than one for each slot, since an operation
// changes one slot, and whoever sees slots filled further on reads these before in the same or in a later state: slots
// before the first empty one never go back to empty.
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
    typename D::Placement placement;  // of a find, its value is the one that was found
    u32 element;
    u8 operation;
    u8 flag;
    bool wants;
    WARPHASH_FN u32 bucket() const { return placement.bucket; }
    WARPHASH_FN Word key() const { return placement.hand.key; }
  };
  WARPHASH_FN static i32 region(const Table&) { return 0; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    // Plain loads and stores: the lanes of a warp are at a line of the batch's arrays one after the other. The value is
    // read of any operation, so that nobody waits for its kind.
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
      // One swap for all kinds: lanes that do unlike things one after the other would wait for each of them.
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
