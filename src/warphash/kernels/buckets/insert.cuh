// The kernels of an insert (core/insert.cuh) that only tables with a choice of buckets have.
//
//   settle         keys that are there, or fit into their first bucket without moving another: done; the rest: leftover
//   settle_new     as settle, of keys that differ from each other and from those in the table
//   place_next     as place, of keys that are not there and whose first buckets are full: from their second ones on
//   migrate        places the pairs of another table's slots
//
// Why two rounds, settle and place_next, for distinct keys. A large batch comes in the order of the parts of the table
// (core/gpu/partition.cuh), so most buckets are still empty when keys of the first parts are sent to their second ones.
// A design that compares loads prefers empty buckets. Their own keys come later, find them full, and are sent away, too:
// finds of iceberg hashing at a load of 0.8 read 4 % more buckets so, with a threshold of 40 % even 19 % more
// (docs/performance/insert.md). So all keys that fit into their first buckets go there first. (Better GPU Hash Tables,
// section V-D, takes keys in any order.)
#pragma once
#include "buckets/abi.cuh"
#include "core/insert.cuh"

namespace warphash {

template <IsDesign D>
struct Settle : Settling {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kSuspends = D::kMovesKeys;
  struct State {
    Probe<S> probe;
    Word value;
    u32 element;
    bool absent;  // known to be in no bucket but perhaps, by now, the first
    bool room;    // the first bucket had a vacant slot to settle in
    Outcome outcome;
    WARPHASH_FN u32 bucket() const { return probe.bucket; }
    WARPHASH_FN Word key() const { return probe.named.key; }
  };
  WARPHASH_FN static i32 region(const Table& t) { return D::region(t); }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 e = element_of(b, i);
    s = {Probe<S>::start(t, key_at<S>(b, e)), value_at<S>(b, e), e, false, false, Outcome::kOpen};
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (seen.hit >= 0) {
      combine_hit<S>(t, b, s.probe.bucket, seen.hit, s.value);
      return end(s, Outcome::kPresent);
    }
    const bool first = s.probe.function == 0;
    if (first) s.room = seen.vacant < D::settle_slots(t);
    if (!s.absent) {
      if (D::advance(t, s.probe, seen)) return false;
      s.absent = true;
    }
    if (!s.room) return end(s, Outcome::kLeftover);
    if (!first) {  // back to the first bucket, which others may have filled
      s.probe.function = 0;
      s.probe.bucket = bucket_of(t, s.probe.named, 0);
      return false;
    }
    const Pair pair = Pair::make(s.probe.named.key, s.value);
    const bool combined = b.op > kReplace;
    return S::occupy(S::at(t, s.probe.bucket) + seen.vacant, pair, combined) && end(s, Outcome::kInserted);
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally& tally) {
    const bool inserted = live && s.outcome == Outcome::kInserted;
    tally.changed += inserted;
    if (live && s.outcome != Outcome::kLeftover)
      set_flag(b, s.element, s.outcome == Outcome::kSuspended ? kUnplaced : inserted ? kChanged : kPresent);
  }

 private:
  using Pair = typename S::Pair;
  WARPHASH_FN static bool end(State& s, Outcome outcome) {
    s.outcome = outcome;
    return true;
  }
};

template <IsDesign D>
struct SettleNew : Settle<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using typename Settle<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    Settle<D>::start(t, b, i, s);
    return s.absent = true;
  }
};

// Where a full bucket evicts a pair, the new pair is as good a victim as any, so it goes on to the second bucket.
template <class D>
struct PlaceNext : Place<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Place<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.outcome = Placed::kGoesOn;
    Probe<S> probe{Named<S>::of(key_at<S>(b, s.element)), 1, 0};
    probe.bucket = bucket_of(t, probe.named, 1);
    s.placement = D::start(probe, value_at<S>(b, s.element), random_start(b.random, s.element));
    return true;
  }
};

template <class D>
struct Migrate : Place<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Place<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const typename S::Pair item = pair_at<S>(b.source_slots, i);
    s.outcome = Placed::kWasThere;
    s.element = static_cast<u32>(i);
    if (!S::holds_key(item)) return false;
    const bool reserved = i / S::kSlots >= b.source_buckets;
    const typename S::Word key = reserved ? item.key + S::kBusy : item.key;
    return Place<D>::begin(t, b, s, static_cast<u32>(i), key, item.payload());
  }
};

}  // namespace warphash
