// `apply` (quotient/apply.cuh) by a thread that has a range for itself.
#pragma once
#include "quotient/apply.cuh"
#include "quotient/cpu/range.cuh"

namespace warphash {

template <class D>
struct ApplyAlone : RangeOfOneThread<D, LinesInPlace> {
  using Base = RangeOfOneThread<D, LinesInPlace>;
  using Base::b, Base::t, Base::m, Base::elements;
  using Base::Base;

  void run() {
    Base::lines = line_at(t, Base::first_bucket)->words;
    if (b.erases)
      for (u32 element = 0; element < elements; ++element) {
        Base::ask_ahead(element);
        erase(element);
      }
    else
      for (u32 element = 0; element < elements; ++element) {
        Base::ask_ahead(element);
        Base::insert(element, Base::brought(element));
      }
    Base::finish();
  }

 private:
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
