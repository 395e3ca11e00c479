// Applies the elements that a batch has brought to a range (quotient/bring.cuh): adds keys, combines values, erases
// keys.
//
// An insert is that of quotient/range.cuh. An erase needs no rounds: each thread looks for its key, and vacates the
// slot. Other threads vacate slots meanwhile, and a slot that lies in two words may be read when one of them is vacant
// already: then it looks like a slot of another key, but the atomic that vacates it tells that it is vacant. So the
// thread looks again. Of threads with equal keys one vacates the slot.
//
// A GPU has two kernels for this. `apply` copies the lines of a range to shared memory and back: 64 KB of traffic,
// however few elements there are. `apply_in_place` works on the lines where they are, and reads only those of its
// elements. A batch with few elements for each range goes to `apply_in_place` first. If one key is everywhere in the
// batch, the range of that key still has many elements. Such a range is entered into the list `heavy`, and `apply` takes
// the ranges of that list. Ranges with many times more elements than slots have kernels of their own
// (quotient/crowds.cuh): `apply` leaves these ranges.
//
// Memory order: relaxed, as in quotient/range.cuh. The end of a kernel publishes the list `heavy` to the next.
#pragma once
#include "quotient/range.cuh"

namespace warphash {

template <class D, class Lines>
struct ApplyToRange : InRange<D, Lines> {
  using Base = InRange<D, Lines>;
  using S = typename D::S;
  using Word = typename S::Word;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::id;
  using Base::Base;
  using Base::words;
  static constexpr u32 kAtOnce = 4;  // elements of a thread whose loads are under way
  // Elements of a range that a block adds in place, in two rounds. Each round waits for the memory of the device
  // several times. With more elements, a copy of the lines costs less.
  static constexpr u32 kMostInPlace = 2 * kThreadsInPlace;
  static constexpr bool kInPlace = !Lines::kCopiesRanges;

  WARPHASH_FN static u64 ranges_of(const QuotientTable& t, const QuotientBatch& b) {
    return Lines::kLeavesCrowds && b.heavy ? report_of(b)->leftover : Base::ranges_of(t, b);
  }
  WARPHASH_FN static u32 range_at(const QuotientBatch& b, u64 number) {
    return Lines::kLeavesCrowds && b.heavy ? pointer<const u32>(b.heavy)[number] : Base::range_at(b, number);
  }
  // A block that works in place leaves a range with many elements to one that copies it.
  WARPHASH_FN static bool takes(const QuotientTable& t, const QuotientBatch& b, u32 range) {
    if constexpr (!kInPlace) return Base::takes(t, b, range);
    if (*counter_of(t, range) <= kMostInPlace) return true;
    if (thread_in_block() == 0) pointer<u32>(b.heavy)[fetch_add(&report_of(b)->leftover, u64(1))] = range;
    return false;
  }

  // The memory is prepared.
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

 private:
  // The elements of this thread from `first` on.
  WARPHASH_FN void erase(u32 first) {
    Word hashes[kAtOnce];
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const u32 element = first + j * Base::threads + id;
      if (element < Base::elements) hashes[j] = Base::brought_hash(element);
    }
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const u32 element = first + j * Base::threads + id;
      if (element >= Base::elements) continue;
      const bool erased = erase(D::home_of(t, hashes[j]));
      Base::changed += erased;
      Base::flag(element, erased);
    }
  }
  WARPHASH_FN bool erase(const Home<Word>& home) {
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
