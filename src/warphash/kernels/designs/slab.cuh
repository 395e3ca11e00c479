// The slab list: a bucket is a list of slabs of 128 bytes, the first in an array, the others from a pool.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), sections III and IV.
//
// Layout: chains/slab_slots.cuh.
//
// Find: slab by slab, until the key is met or a slab has no next one.
//
// Place (any calls may share a key, and run beside erases):
//   1. read the slab; the key is there: done;
//   2. it has a vacant slot, the first of the list then: swap the pair in; another was faster: read again;
//   3. it has a next slab: go on there;
//   4. it is the last: take a slab from the pool and swap its address into `next`. If another was faster, go on in that
//      slab, and keep ours for the next end of a list; at the end, give back a slab that was not used.
// If the pool is exhausted, the key is not placed, and the host lets the pool grow.
//
// Why one kernel. Slots of a list are taken in order and never become vacant again, so two copies of a key swap against
// one slot. No copy can be overlooked, so there is no need for settle and claim, which cuckoo tables have
// (core/insert.cuh).
//
// Departures. The paper gives the losing slab back at once and takes another at the next end. REPLACE in its Figure 2
// expects an empty pair where the key is (line 35), and the authors' code erases to empty: here the value of a present
// key changes in place, and an erased slot stays so.
#pragma once
#include "chains/slab_slots.cuh"
#include "core/design.cuh"

namespace warphash {

template <class S_>
struct Slab : OverChains {
  using S = SlabSlots<S_>;
  using Item = typename S::Item;
  static constexpr bool kSettles = false, kMovesKeys = false, kReadsFirst = true;
  WARPHASH_FN static i32 settle_slots(const Table&) { return 0; }
  WARPHASH_FN static i32 region(const Table&) { return 0; }
  WARPHASH_FN static bool advance(const Table& t, Probe<S>& probe, const BucketView<S>& seen) {
    if (seen.next == kNoSlab) return false;
    probe.bucket = S::number_of(t, seen.next);
    return true;
  }

  struct Placement {
    Item hand;
    u32 bucket;
    u32 spare;  // a slab of ours that is in no list
  };

  WARPHASH_FN static Placement start(const Probe<S>& probe, typename S::Word value, u32) {
    return {Item::make(probe.named.key, value), probe.bucket, kNoSlab};
  }

  WARPHASH_FN static Placed step(const Table& t, Placement& p, const BucketView<S>& seen) {
    return seen.hit >= 0 ? Placed::kWasThere : append(t, p, seen);
  }

  // As step, but copies of the key do not matter.
  WARPHASH_FN static Placed append(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.vacant < S::kDataSlots)
      return S::occupy(S::at(t, p.bucket) + seen.vacant, p.hand) ? Placed::kInserted : Placed::kGoesOn;
    return extend(t, p, seen);
  }

  // Goes on to the next node, which may have to be linked first.
  WARPHASH_FN static Placed extend(const Table& t, Placement& p, const BucketView<S>& seen) {
    if (seen.next != kNoSlab)
      p.bucket = S::number_of(t, seen.next);
    else if (p.spare != kNoSlab)
      link(t, p, p.spare);
    else
      return Placed::kWantsSlab;
    return Placed::kGoesOn;
  }

  // Relaxed: a slab that is linked is all ones, as it was before the kernel began.
  WARPHASH_FN static void link(const Table& t, Placement& p, u32 slab) {
    const u32 next = compare_exchange_word(S::next_of(S::at(t, p.bucket)), kNoSlab, slab);
    p.spare = next == kNoSlab ? kNoSlab : slab;
    p.bucket = S::number_of(t, next == kNoSlab ? slab : next);
  }

  WARPHASH_FN static void end(const Table& t, Placement& p) {
    if (p.spare != kNoSlab) release_slab(pool_of(t), p.spare);
  }
};

}  // namespace warphash
