// Applies the elements that a batch has brought to a range (quotient/bring.cuh): adds keys, combines values, erases
// keys.
//
// An insert is that of quotient/range.cuh. An erase, for as many elements at a time as there are threads: each thread
// looks for its key and, behind a barrier, vacates the slot. Of equal keys one does.
#pragma once
#include "quotient/range.cuh"

namespace warphash {

template <class D, class Lines>
struct ApplyToRange : InRange<D, Lines> {
  using Base = InRange<D, Lines>;
  using S = typename D::S;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::id;
  using Base::Base;
  using Base::words;

  // Applies the elements of listed range `number`. The memory is prepared.
  WARPHASH_FN static void run_block(const QuotientTable& t, const QuotientBatch& b, u64 number, void* memory) {
    if (number >= report_of(b)->winners) return;
    ApplyToRange(t, b, pointer<const u32>(b.touched)[number], memory).run();
  }

 private:
  WARPHASH_FN void run() {
    Base::lines = Lines::open(m.range, line_at(t, Base::first_bucket), Base::size, id, Base::threads);
    block_barrier();
    Base::in_rounds(
        Base::elements, [&](u32 element) { return Base::brought(element); },
        [&](u32 first, bool live, const Brought& item) {
          if (kPrefetches) Base::prefetch_ahead(first);
          if (b.erases)
            erase_round(first, live, item);
          else
            Base::insert_round(first, live, item, first + id);
        });
    Base::finish();
  }

  WARPHASH_FN void erase_round(u32 first, bool live, const Brought& item) {
    typename Base::Spot spot = {0, Base::kNoSlot, false};
    if (live) spot = Base::look(D::home_of(t, item.key));
    block_barrier();
    const bool erased = spot.found() && S::vacate(words(spot.bucket), spot.slot);
    if (erased && spot.guest) fetch_or(&m.stale, 1u);
    Base::changed += erased;
    if (live) Base::flag(first + id, erased);
    block_barrier();
  }
};

}  // namespace warphash
