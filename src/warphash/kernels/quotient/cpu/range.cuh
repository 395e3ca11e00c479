// What a CPU does in a range (quotient/range.cuh): a thread has the range for itself, and inserts one element after
// another. The steps of a round are then one search and one store. An element for which neither bucket has a vacant slot
// moves a key in its way to the other bucket of that key. If there is none to move, it takes a round of its own.
#pragma once
#include "core/cpu/schedule.cuh"
#include "quotient/cpu/lines.cuh"
#include "quotient/range.cuh"

namespace warphash {

// Gives each thread ranges, one after another.
template <class Work>
struct OneThreadARange : OverQuotients {
  static constexpr bool kWalks = true;
  static void run(const QuotientTable& t, const QuotientBatch& b, u64 begin, u64 end) {
    const QuotientTable table = t;  // local copies, as in core/cpu/schedule.cuh
    const QuotientBatch batch = b;
    alignas(64) u8 memory[Work::kMemoryBytes];
    Work::prepare(memory);
    const u64 ranges = report_of(b)->winners;
    for (u64 number = (begin + kApplyingThreads - 1) / kApplyingThreads; number * kApplyingThreads < end; ++number)
      if (number < ranges) Work(table, batch, pointer<const u32>(b.touched)[number], memory).run();
  }
};

template <class D, class Lines, class Before = NothingBefore>
struct RangeOfOneThread : InRange<D, Lines, Before> {
  using S = typename D::S;
  using Word = typename S::Word;
  using Base = InRange<D, Lines, Before>;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m;
  using Base::Base;
  static constexpr u32 kAhead = 32;  // elements under way

  // Asks for what an element to come needs, which may be the first of the next range.
  WARPHASH_FN void ask_ahead(u32 element) const {
    const u64 ahead = u64(Base::start) + element + kAhead;
    if (ahead >= report_of(b)->losers) return;
    prefetch(line_at(t, D::home_of(t, S::hash_of(pointer<const Brought>(b.brought)[ahead])).bucket));
    if (b.out_flags) ask_for_flag(ahead);
  }
  // Of an element of `brought`.
  WARPHASH_FN void ask_for_flag(u64 at) const {
    prefetch(pointer<const u8>(b.out_flags) + pointer<const u32>(b.numbers)[at]);
  }
  WARPHASH_FN void insert(u32 element, const Brought& item) {
    const auto home = D::home_of(t, S::hash_of(item));
    const auto spot = Base::look(home);
    if (spot.found()) {
      combine_alone(spot, item);
      return Base::flag(element, kPresent);
    }
    if (const u32 free = Base::vacant(home.bucket)) {
      Base::put(home.bucket, first_bit(free), home.remainder, false, S::value_of(item));
    } else {
      const u32 second = D::second_of(t, Base::first_bucket, home), other_free = Base::vacant(second);
      if (!other_free) return insert_by_moves(element, home, item);
      Base::put(second, first_bit(other_free), home.remainder, true, S::value_of(item));
      Base::words(home.bucket)[0] |= D::filter_bit(home.remainder);
    }
    ++Base::changed;
    Base::flag(element, kChanged);
  }
  WARPHASH_FN void combine_alone(const typename Base::Spot& spot, const Brought& item) const {
    if constexpr (S::kHasValue) {
      if (b.op == kKeep) return;
      auto* const at = S::value(Base::words(spot.bucket), spot.slot);
      const auto operand = S::value_of(item);
      *at = b.op == kReplace ? operand : static_cast<typename S::Value>(combine_bits(b.op, b.kind, *at, operand));
    }
  }
  // Mostly one key in the way can go to its other bucket. Otherwise a round searches further.
  [[gnu::noinline]] void insert_by_moves(u32 element, const Home<Word>& home, const Brought& item) {
    const bool moved = !is_full && Base::template with_move<1>(true, home, [&](const typename Base::Move& move) {
      Base::make(move, item);
      return true;
    });
    if (!moved) return insert_in_round(element, item);
    ++Base::changed;
    Base::flag(element, kChanged);
  }
  [[gnu::noinline]] void insert_in_round(u32 element, const Brought& item) {
    if (is_full) {
      atomic_add(&report_of(b)->unplaced, u64(1));
      return Base::flag(element, kUnplaced);
    }
    const u64 before = Base::changed;
    Base::insert_round(element, true, item, element);
    if (Base::changed == before) is_full = has_no_vacant_slot();
  }

 private:
  bool is_full = false;  // then no search for room is begun: it would read the whole range for each element

  bool has_no_vacant_slot() const {
    for (u32 k = 0; k < Base::size; ++k)
      if (Base::vacant(Base::first_bucket + k)) return false;
    return true;
  }
};

}  // namespace warphash
