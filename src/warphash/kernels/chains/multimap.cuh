// Lists that hold a key as often as it was inserted.
// Source: A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), section III-B.
//
//   append      adds every pair, whatever is there (chains/append.cuh)
//   count       pairs of each key, u32, to out_counts
//   find_all    values of the key of element i, to out_values from offsets[i] (u64) on, in the order of the list
//   erase_all   turns all slots of each key into tombstones; out_counts: how many this element erased
//   retract     undoes append: turns the last slot that holds the pair of each listed element into a tombstone
//
// Order. Slots of a list are taken in order and keep their pairs until these are erased. The upkeep of chains/lists.cuh
// keeps the order of pairs. So the values of a key come back in the order of the batches that inserted them; within a
// batch, in any order. The first value is the "least recent" one of the paper: find returns it, and erase takes it.
#pragma once
#include "chains/append.cuh"

namespace warphash {

// A walk over the whole list of a key, in a table that no other kernel changes.
template <class D>
struct Survey : Find<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  static constexpr bool kSeesAll = true;
  struct State : Find<D>::State {
    u64 count;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.count = 0;
    return Find<D>::start(t, b, i, s);
  }
};

template <class D>
struct Count : Survey<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Survey<D>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    s.count += bit_count(seen.hits);
    return !D::advance(t, s.probe, seen);
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool live, Tally&) {
    if (live) store_once(pointer<u32>(b.out_counts) + i, static_cast<u32>(s.count));
  }
};

template <class D>
struct FindAll : Survey<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  using typename Survey<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u64* offsets = pointer<const u64>(b.offsets);
    Find<D>::start(t, b, i, s);
    s.count = load_once(offsets + i);
    return load_once(offsets + i + 1) > s.count;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    const typename S::Item* node = S::at(t, s.probe.bucket);
    for (u32 hits = seen.hits; hits; hits &= hits - 1)
      store_once(pointer<Word>(b.out_values) + s.count++, load_slot<false>(node + first_bit(hits)).payload());
    return !D::advance(t, s.probe, seen);
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}
};

template <class D>
struct Retract : Seek<D, true> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Item = typename S::Item;
  static constexpr bool kSeesAll = true;
  struct State : Seek<D, true>::State {
    Item* last;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.last = nullptr;
    return Seek<D, true>::start(t, b, i, s);
  }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    Item* node = S::at(t, s.probe.bucket);
    for (u32 hits = seen.hits; hits; hits &= hits - 1) {
      const Item item = load_slot<false>(node + first_bit(hits));
      if (item.key == s.key() && item.payload() == s.value_) s.last = node + first_bit(hits);
    }
    if (D::advance(t, s.probe, seen)) return false;
    const Item pair = Item::make(s.key(), s.value_);
    if (!s.last || compare_exchange(s.last, pair, S::tombstone()).key == pair.key) return true;
    s.last = nullptr;  // another element with this pair was faster
    s.probe.bucket = bucket_of(t, s.probe.named, 0);
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    tally.erased += live && s.last;
  }
};

template <class D>
struct EraseAll : Survey<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Survey<D>::State;
  static constexpr bool kCounts = true, kFrozen = false;
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    typename S::Item* node = S::at(t, s.probe.bucket);
    for (u32 hits = seen.hits; hits; hits &= hits - 1) {
      const typename S::Item item = load_slot<false>(node + first_bit(hits));
      s.count += item.key == s.key() && compare_exchange(node + first_bit(hits), item, S::tombstone()).key == item.key;
    }
    return !D::advance(t, s.probe, seen);
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.erased += static_cast<u32>(s.count);
    store_once(pointer<u32>(b.out_counts) + i, static_cast<u32>(s.count));
  }
};

}  // namespace warphash
