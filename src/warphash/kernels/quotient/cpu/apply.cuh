// `apply` (quotient/apply.cuh) by a thread that has a range for itself.
//
// An update goes block by block. The homes of a block are computed together, by SIMD, and their lines are asked for while
// the block before is inserted. A key that is in its home, and one that is new and has a slot there, are done with one
// look at the line. The others wait for the end of the block, while their second lines are asked for: elements with equal
// keys wait together, so they stay in order. `scatter` has flagged all elements as changed (`flags_ahead`), so a new key needs no flag.
#pragma once
#include "quotient/apply.cuh"
#include "quotient/cpu/bring.cuh"
#include "quotient/cpu/range.cuh"

namespace warphash {

template <class D>
struct ApplyAlone : RangeOfOneThread<D, LinesInPlace> {
  using Base = RangeOfOneThread<D, LinesInPlace>;
  using S = typename D::S;
  using Word = typename S::Word;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::elements;
  using Base::Base;
  static constexpr u32 kBlock = 64;

  void run() {
    Base::lines = line_at(t, Base::first_bucket)->words;
    if (b.erases)
      for (u32 element = 0; element < elements; ++element) {
        Base::ask_ahead(element);
        erase(element);
      }
    else
      insert_all();
    Base::finish();
  }

 private:
  struct Block {
    u32 n;
    u32 buckets[kBlock];
    u32 filters[kBlock];  // the bit of the key
    Word remainders[kBlock];
  };

  const Brought* items() const { return pointer<const Brought>(b.brought) + Base::start; }

  // The block that begins with an element. Behind the last one, elements of the next range follow.
  [[gnu::noinline]] void open(u32 first, Block& block) const {
    const QuotientTable table = t;
    const u64 behind = report_of(b)->losers - Base::start, in_range = elements;
    const u64 left = (first < in_range ? in_range : behind) - first;
    const u32 n = left < kBlock ? static_cast<u32>(left) : kBlock;
    const Brought* const some = items() + first;
    for (u32 k = 0; k < n; ++k) {
      const Home<Word> home = D::home_of(table, S::hash_of(some[k]));
      block.buckets[k] = home.bucket;
      block.remainders[k] = home.remainder;
      block.filters[k] = D::filter_bit(home.remainder);
    }
    block.n = n;
  }

  void insert_all() {
    Block blocks[2];
    Block *seen = &blocks[0], *next = &blocks[1];
    open(0, *next);
    const bool ahead = flags_ahead(b);
    bool asks = b.out_flags && !ahead;  // for flags: once some keys have been there
    for (u32 first = 0; first < elements; first += seen->n) {
      Block* const done = seen;
      seen = next, next = done;
      open(first + seen->n, *next);
      const u32 present = insert(first, *seen, *next, ahead, asks);
      asks |= b.out_flags && present;
    }
  }
  // The elements of a block: how many were there.
  WARPHASH_FN u32 insert(u32 first, const Block& seen, const Block& next, bool ahead, bool asks) {
    const Brought* const some = items() + first;
    u32 present = 0, changed = 0, waiting = 0;
    u32 numbers[kBlock];  // of those that wait
    for (u32 k = 0; k < seen.n; ++k) {
      if (k < next.n) {
        prefetch(line_at(t, next.buckets[k]));
        if (asks) Base::ask_for_flag(u64(Base::start) + first + seen.n + k);
      }
      u32* const w = Base::words(seen.buckets[k]);
      const u32 hits = S::matches(w, seen.remainders[k], false);
      if (hits) {
        Base::combine_alone({seen.buckets[k], first_bit(hits), false}, some[k]);
        Base::flag(first + k, kPresent);
        ++present;
        continue;
      }
      const u32 free = ~S::occupied(w) & S::kAllSlots;
      if (free && !(w[0] & seen.filters[k])) [[likely]] {
        const u32 slot = first_bit(free);
        S::put(w, slot, seen.remainders[k], false);
        if constexpr (S::kHasValue) *S::value(w, slot) = S::value_of(some[k]);
        if (!ahead) Base::flag(first + k, kChanged);
        ++changed;
      } else {
        numbers[waiting++] = k;
        prefetch(line_at(t, D::second_of(t, Base::first_bucket, {seen.buckets[k], seen.remainders[k]})));
      }
    }
    for (u32 k = 0; k < waiting; ++k) insert_one(first + numbers[k], some[numbers[k]]);
    Base::probes += present + changed;
    Base::changed += changed;
    return present;
  }
  [[gnu::noinline]] void insert_one(u32 element, const Brought& item) { Base::insert(element, item); }

  WARPHASH_FN void erase(u32 element) {
    const auto spot = Base::look(D::home_of(t, Base::brought(element).key));
    if (spot.found()) {
      D::S::vacate(Base::words(spot.bucket), spot.slot);
      m.stale |= spot.guest;
      ++Base::changed;
    }
    Base::flag(element, spot.found());
  }
};

template <class D>
struct TaskOnCpu<OneThreadARange<ApplyToRange<D, LinesInPlace>>> {
  using type = OneThreadARange<ApplyAlone<D>>;
};

}  // namespace warphash
