// The insert, written once for any design (core/bulk.cuh).
//
//   settle         keys that are there, or fit into their first bucket without moving another: done; the rest: leftover
//   claim          of the elements with one key, one wins
//   place          puts a key into the table that no other element of the launch has
//   migrate        places the pairs of another table's slots
//
// Why an insert of keys that may repeat takes settle, claim and place. In a cuckoo table a key on the move is in no
// slot, so two copies of one new key cannot see each other while keys are evicted. settle evicts no key: a copy of k
// either finds k, or goes for the first vacant slot of the *first* bucket of k. Slots only fill up meanwhile, so the
// copies of k swap against the same slot, or see the copy that won. Once that bucket is full without k, it stays full
// without k, and every copy of k becomes a leftover. claim then leaves one leftover of each key, so place has only
// distinct keys that are not in the table. (Better GPU Hash Tables asks the caller for unique keys.)
#pragma once
#include "core/bulk.cuh"

namespace warphash {

// The members of a task that lists some elements, by their numbers, for the next kernel.
struct ListsLeftover {
  static constexpr int kLists = 1;
  using Entry = u32;
  WARPHASH_FN static u64* length(const InsertBatch& b, int) { return &report_of(b)->leftover; }
  WARPHASH_FN static void enter(const InsertBatch& b, int, u64 place, Entry e) { pointer<u32>(b.leftover)[place] = e; }
};

// ---- settle
// The members that every task that settles has.
struct Settling : ListsLeftover {
  static constexpr bool kProbes = true, kReads = true, kCounts = true;
  static constexpr bool kFrozen = false, kVacancy = true;
  static constexpr int kPartBytes = 128;
  enum class Outcome { kOpen, kPresent, kInserted, kLeftover, kSuspended };
  // A displaced pair is in no bucket: its key would be taken for absent. The host places it first, and settles anew.
  template <class State>
  WARPHASH_FN static bool suspend(State& s) {
    s.outcome = Outcome::kSuspended;
    return false;
  }
  template <class State>
  WARPHASH_FN static bool lists(int, const State& s) {
    return s.outcome == Outcome::kLeftover;
  }
  template <class State>
  WARPHASH_FN static u32 entry(const State& s) {
    return s.element;
  }
};

// ---- claim
// The claims are a set of elements, hashed by key with linear probing. An element that meets its own key there has
// lost. The hash takes the random word of the batch, so nobody can make keys of one hash value, which would take
// quadratic time. Relaxed: a claim is one word that names an element, and the keys do not change.
template <class D>
struct Claim {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 2;  // winners, losers
  struct State {
    u32 element;
    bool won;
  };
  WARPHASH_FN static u64 home(const Batch& b, const Word& key) {
    return mix(static_cast<u64>(digest(b.random, key)) ^ b.random * 0x9e3779b97f4a7c15ull);
  }
  WARPHASH_FN static const void* hint(const Table&, const Batch& b, u64 i) {
    return pointer<u32>(b.claims) + (home(b, key_at<S>(b, element_of(b, i))) & b.claim_mask);
  }
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    const Word key = key_at<S>(b, s.element);
    u32* claims = pointer<u32>(b.claims);
    for (u64 at = home(b, key);; ++at) {
      u32* claim = claims + (at & b.claim_mask);
      const u32 owner = compare_exchange_word(claim, kNowhere, s.element);
      s.won = owner == kNowhere;
      if (s.won || key_at<S>(b, owner) == key) return false;
    }
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally&) {
    if (live && !s.won && !b.losers) set_flag(b, s.element, kPresent);  // combine flags the losers that it gets
  }
  using Entry = u32;
  WARPHASH_FN static u64* length(const Batch& b, int list) {
    return list == 0 ? &report_of(b)->winners : b.losers ? &report_of(b)->losers : nullptr;
  }
  WARPHASH_FN static bool lists(int list, const State& s) { return s.won == (list == 0); }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void enter(const Batch& b, int list, u64 place, Entry e) {
    pointer<u32>(list == 0 ? b.winners : b.losers)[place] = e;
  }
};

// ---- place, migrate
template <IsDesign D>
struct Place {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = true, kReads = D::kReadsFirst, kSuspends = D::kMovesKeys, kCounts = true;
  static constexpr bool kFrozen = false, kVacancy = true, kRefills = S::kLinked;
  static constexpr u32 kThreads = 128;  // of a block, which waits for its slowest warp
  static constexpr int kLists = 0;
  static constexpr int kPartBytes = 128;
  struct State {
    typename D::Placement placement;
    u32 element;
    Placed outcome;
    WARPHASH_FN u32 bucket() const { return placement.bucket; }
    WARPHASH_FN Word key() const { return placement.hand.key; }
  };
  WARPHASH_FN static i32 region(const Table&) { return 0; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 e = element_of(b, i);
    return begin(t, b, s, e, key_at<S>(b, e), value_at<S>(b, e));
  }
  WARPHASH_FN static bool begin(const Table& t, const Batch& b, State& s, u32 element, Word key, Word value) {
    s.placement = D::start(Probe<S>::start(t, key), value, random_start(b.random, element));
    s.element = element;
    s.outcome = Placed::kGoesOn;
    return true;
  }
  // A pair is displaced already: this key may be placed, but not at the cost of another.
  WARPHASH_FN static bool suspend(State& s) {
    s.placement.may_evict = false;
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    const u32 bucket = s.placement.bucket;
    s.outcome = D::step(t, s.placement, seen);
    if (s.outcome == Placed::kWasThere) combine_hit<S>(t, b, bucket, seen.hit, s.placement.hand.payload());
    return s.outcome != Placed::kGoesOn && s.outcome != Placed::kWantsSlab;
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    const bool displaced = s.outcome == Placed::kDisplaced;  // the pair that this chain evicted last: another, or ours
    const bool inserted = s.outcome == Placed::kInserted || displaced;
    tally.changed += inserted;
    if constexpr (D::kMovesKeys)
      if (displaced) {
        suspend_others(b);
        const u64 place = fetch_add(&report_of(b)->displaced, 1ull);
        if (place < kDisplacedCapacity) pointer<typename S::Pair>(b.displaced)[place] = s.placement.hand;
      }
    const bool unplaced = s.outcome == Placed::kNoRoom;
    if (unplaced) atomic_add(&report_of(b)->unplaced, 1ull);
    set_flag(b, s.element, unplaced ? kUnplaced : inserted ? kChanged : kPresent);
  }
};

}  // namespace warphash
