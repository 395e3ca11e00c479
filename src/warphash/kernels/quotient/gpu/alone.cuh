// What one thread does with an element that was left under locks (quotient/gpu/locked.cuh): it has the range for itself,
// so it reads and writes plainly, and may search for a path to a vacant slot (quotient/range.cuh).
#pragma once
#include "core/value.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/range.cuh"

namespace warphash {

template <class D>
struct PlaceAlone {
  using S = typename D::S;
  using Range = InRange<D, LinesInGlobal>;
  using Homed = Home<typename S::Word>;

  WARPHASH_FN static Range range_of(const QuotientTable& t, const QuotientBatch& b, u32 number, void* memory) {
    Range range(t, b, number, memory);
    range.lines = line_at(t, range.first_bucket)->words;
    return range;
  }

  // Combines the value of a key that is there, or adds the key: the flag of the element.
  WARPHASH_FN static u8 place(Range& range, const QuotientBatch& b, const Homed& home, typename S::Value operand) {
    const auto spot = range.look(home);
    if (spot.found()) {
      if constexpr (S::kHasValue) combine(S::value(range.words(spot.bucket), spot.slot), operand, b.op, b.kind);
      return kPresent;
    }
    return put_near(range, home, operand) || range.make_room(home, operand) ? kChanged : kUnplaced;
  }

  // Whether to make the filters of the range anew, since a guest has left a bucket: chance decides, as in
  // quotient/range.cuh.
  WARPHASH_FN static bool pays_to_renew(const Range& range, const Homed& home) {
    return range.m.stale && D::mixed(home.remainder) % (2 * range.size) == 0;
  }

 private:
  // Puts a new key into a vacant slot of its home or of its second bucket; false if there is none.
  WARPHASH_FN static bool put_near(Range& range, const Homed& home, typename S::Value value) {
    const u32 second = D::second_of(range.t, range.first_bucket, home), free = range.vacant(home.bucket);
    const u32 bucket = free ? home.bucket : second, slots = free ? free : range.vacant(second);
    if (slots) range.put_stuck(bucket, first_bit(slots), home, !free, value);
    return slots != 0;
  }
};

}  // namespace warphash
