// Applies the elements that a batch has brought to a range (quotient/bring.cuh): adds keys, combines values, erases
// keys.
//
// An insert is that of quotient/range.cuh. An erase needs no rounds: each thread looks for its key, and vacates the
// slot. Other threads vacate slots meanwhile, and a slot that lies in two words may be read when one of them is vacant
// already: then it looks like a slot of another key, but the atomic that vacates it tells that it is vacant. So the
// thread looks again. Of threads with equal keys one vacates the slot.
//
// Memory order: relaxed, as in quotient/range.cuh.
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
  static constexpr u32 kAtOnce = 4;  // elements of a thread whose loads are under way

  // Applies the elements of listed range `number`, if it is for these Lines. The memory is prepared.
  WARPHASH_FN static void run_block(const QuotientTable& t, const QuotientBatch& b, u64 number, void* memory) {
    if (number >= report_of(b)->winners) return;
    ApplyToRange apply(t, b, pointer<const u32>(b.touched)[number], memory);
    if (Lines::kCopiesRanges == apply.elements > b.most_in_place) apply.run();
  }

 private:
  WARPHASH_FN void run() {
    Base::lines = Lines::open(m.range, line_at(t, Base::first_bucket), Base::size, id, Base::threads);
    block_barrier();
    if (b.erases) {
      for (u32 first = 0; first < Base::elements; first += kAtOnce * Base::threads) erase(first);
    } else {
      Base::in_rounds(
          Base::elements, [&](u32 element) { return Base::brought(element); },
          [&](u32 first, bool live, const Brought& item) { Base::insert_round(first, live, item, first + id); });
    }
    Base::finish();
  }

  // The elements of this thread from `first` on.
  WARPHASH_FN void erase(u32 first) {
    Brought items[kAtOnce];
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const u32 element = first + j * Base::threads + id;
      if (element < Base::elements) items[j] = Base::brought(element);
    }
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const u32 element = first + j * Base::threads + id;
      if (element >= Base::elements) continue;
      const bool erased = erase(D::home_of(t, items[j].key));
      Base::changed += erased;
      Base::flag(element, erased);
    }
  }
  WARPHASH_FN bool erase(const Home<typename S::Word>& home) {
    for (;;) {
      const auto spot = Base::look(home);
      if (!spot.found()) return false;
      if (!S::vacate(words(spot.bucket), spot.slot)) continue;
      if (spot.guest) fetch_or(&m.stale, 1u);
      return true;
    }
  }
};

}  // namespace warphash
