// An insert that drops the pair which a chain of evictions leaves without a slot. lab/figures/lossy.py launches it.
// Source: Dynamic Hash Tables on GPUs, Tables 4 to 8 and Figure 9, whose cuckoo tables drop such pairs and go on.
//
//   drop_megakv, drop_cuckoo   place each pair, or count it in Report::displaced
//
// Requirements: the keys are distinct, and none is in the table.
//
// The chain is that of `place` (core/insert.cuh). There, a pair without a slot is kept, and no other pair is moved from
// then on, so the share of pairs without a slot cannot be counted in one launch. Here all chains go on to their ends.
// The pair that is dropped is the one that the chain evicted last, so it need not be the pair that was inserted.
#pragma once
#include "buckets/columns.cuh"
#include "buckets/insert.cuh"
#include "designs/cuckoo.cuh"
#include "designs/megakv.cuh"

namespace warphash {

template <IsDesign D>
struct PlaceOrDrop : Place<D> {
  static constexpr bool kSuspends = false;
  WARPHASH_FN static void finish(const typename D::Table&, const typename D::Batch& b, u64, typename Place<D>::State& s,
                                 bool live, Tally& tally) {
    if (!live) return;
    const bool dropped = s.outcome == Placed::kDisplaced || s.outcome == Placed::kNoRoom;
    tally.changed += s.outcome == Placed::kInserted;
    if (dropped) atomic_add(&report_of(b)->displaced, 1ull);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                                                                    \
  WARPHASH_ENTRY(drop_megakv, warphash::PlaceOrDrop<warphash::TableOf<warphash::Megakv, warphash::u32, true, 8>>) \
  WARPHASH_ENTRY(drop_cuckoo, warphash::PlaceOrDrop<warphash::TableOf<warphash::Cuckoo, warphash::u32, true, 1>>)
