// The insert into a two-level table, up to the placing of keys in buckets (two_level/place.cuh).
//
//   settle         keys that are there, or whose first slot is vacant: done; the rest: leftover
//   claim          of the elements with one key, one wins (core/insert.cuh)
//   link           enters the winners into the lists of their buckets
//   place          a block for each bucket that has such a list
//
// and of a build, which fills a table without keys, or takes over the pairs of another table:
//
//   scatter        brings the pairs of a batch to the ranges of their buckets, in any order
//   scatter_slots  brings the pairs of another table's slots there
//   place_all      a block for each bucket
//
// How a key comes to be in one slot only. No key moves in `settle`: a copy of k finds k, or, once it has looked
// everywhere, goes for the slot that function 0 gives k. Slots only fill up meanwhile. So the copies of k swap against
// one slot, or see the copy that won; if another key has the slot, every copy of k becomes a leftover. claim then leaves
// one leftover of each key, so `place` has only distinct keys that are not in the table. A reserved key has a slot of
// its own, and is done in `settle` or in `scatter`.
//
// Memory order: relaxed. A swap carries a whole pair. The lists, and the pairs that a scatter has written, are read by
// the next kernel.
#pragma once
#include "core/insert.cuh"
#include "two_level/bulk.cuh"

namespace warphash {

// ---- settle
template <class D>
struct SettleInRange : SeekInRange<D> {
  using S = typename D::S;
  using Item = typename S::Item;
  static constexpr int kLists = 1;
  enum class Outcome { kOpen, kPresent, kInserted, kLeftover };
  struct State : SeekInRange<D>::State {
    Item* vacant;  // the slot of function 0, if it can take the key
    Outcome outcome;
  };
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s) {
    s.vacant = nullptr;
    s.outcome = Outcome::kOpen;
    return SeekInRange<D>::start(t, b, i, s);
  }
  WARPHASH_FN static bool step(const TwoLevelTable& t, const TwoLevelBatch& b, State& s) {
    auto& search = s.search;
    if (search.opens()) {
      search.open(t);
      return false;
    }
    if (search.look()) return end(s, Outcome::kPresent);
    if (search.function == 0 && S::is_vacant(search.seen)) s.vacant = search.slot;
    if (search.advance(t)) return false;
    if (!s.vacant) return end(s, Outcome::kLeftover);
    if (S::occupy(in_global(s.vacant), Item::make(search.named.key, value_at<S>(b, s.element))))
      return end(s, Outcome::kInserted);
    search.slot = s.vacant;  // another element was faster
    return end(s, search.look() ? Outcome::kPresent : Outcome::kLeftover);
  }
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.probes += s.search.function + 1;
    tally.changed += s.outcome == Outcome::kInserted;
    if (s.outcome == Outcome::kLeftover) return;
    if (s.outcome == Outcome::kPresent) combine_in<S>(b, s.search.slot, s.element);
    set_flag(b, s.element, s.outcome == Outcome::kInserted ? kChanged : kPresent);
  }
  using Entry = u32;
  WARPHASH_FN static u64* length(const TwoLevelBatch& b, int) { return &report_of(b)->leftover; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.outcome == Outcome::kLeftover; }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void enter(const TwoLevelBatch& b, int, u64 place, Entry e) {
    pointer<u32>(b.leftover)[place] = e;
  }

 private:
  WARPHASH_FN static bool end(State& s, Outcome how) {
    s.outcome = how;
    return true;
  }
};

// ---- link
// A bucket's counter becomes the head of a list of elements. Who finds no list there lists the bucket. A bucket that an
// earlier launch of the same update has left as kBucketFailed is listed again: its list ends with that mark.
template <class D>
struct LinkToBucket : Straight<TwoLevelTable, TwoLevelBatch> {
  using S = typename D::S;
  static constexpr int kLists = 1;
  struct Link {
    u32 element;
  };
  struct State {
    u32 bucket;
    bool first;
  };
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s) {
    const u32 element = element_of(b, i);
    s.bucket = D::bucket_of(t, key_at<S>(b, element));
    const u32 behind = exchange(reinterpret_cast<Link*>(Ranges<S>::counter(t, s.bucket)), Link{element}).element;
    pointer<u32>(b.chain)[element] = behind;
    s.first = behind >= kBucketFailed;
    return false;
  }
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch&, u64, State&, bool, Tally&) {}
  using Entry = u32;
  WARPHASH_FN static u64* length(const TwoLevelBatch& b, int) { return pointer<u64>(b.touched_count); }
  WARPHASH_FN static bool lists(int, const State& s) { return s.first; }
  WARPHASH_FN static Entry entry(const State& s) { return s.bucket; }
  WARPHASH_FN static void enter(const TwoLevelBatch& b, int, u64 place, Entry e) { pointer<u32>(b.touched)[place] = e; }
};

// ---- scatter
// Each pair goes to the next place of its bucket's range, which the counter of the bucket gives out. A pair for which
// the range has no place is lost: the host gives the build up.
//
// Why so. The places of a bucket are written one after another, so the second-level cache gathers whole sectors: a pair
// costs an addition and a write there, and the batch is read and written once in a stream. A histogram and its prefix
// sums would read the keys a second time, and need memory of the size of the batch.
template <class D>
struct ScatterToRanges : Straight<TwoLevelTable, TwoLevelBatch> {
  using S = typename D::S;
  using Item = typename S::Item;
  static constexpr bool kCounts = true;
  struct State {
    bool added, lost;
  };
  WARPHASH_FN static const void* hint(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i) {
    const typename S::Word key = pointer<const typename S::Word>(b.keys)[i];
    return Ranges<S>::counter(t, S::is_reserved(key) ? 0 : D::bucket_of(t, key));
  }
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s) {
    const u32 element = static_cast<u32>(i);
    const auto named = Named<S>::of(key_at<S>(b, element));
    return bring(t, Item::make(named.key, value_at<S>(b, element)), named.reserved, s);
  }
  WARPHASH_FN static bool bring(const TwoLevelTable& t, const Item& item, bool reserved, State& s) {
    s = {false, false};
    if (reserved) {
      s.added = S::occupy(Ranges<S>::reserved_slot(t, item.key), item);
      return false;
    }
    const u32 bucket = D::bucket_of(t, item.key);
    const Range range = Ranges<S>::entry(t, bucket)->range();
    const u32 place = fetch_add(Ranges<S>::counter(t, bucket), 1u);
    s.lost = place >= range.slots;
    if (!s.lost) Ranges<S>::slots(range)[place] = item;
    return false;
  }
  WARPHASH_FN static void finish(const TwoLevelTable&, const TwoLevelBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.changed += s.added;
    if (s.lost) atomic_add(&report_of(b)->unplaced, 1ull);
  }
};

template <class D>
struct ScatterSlots : ScatterToRanges<D> {
  using S = typename D::S;
  using Item = typename S::Item;
  using typename ScatterToRanges<D>::State;
  WARPHASH_FN static const void* hint(const TwoLevelTable&, const TwoLevelBatch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const TwoLevelTable& t, const TwoLevelBatch& b, u64 i, State& s) {
    s = {false, false};
    const Item item = load_slot<false>(pointer<const Item>(b.source_slots) + i);
    if (S::holds_key(item)) ScatterToRanges<D>::bring(t, item, i >= b.source_keys, s);
    return false;
  }
};

}  // namespace warphash
