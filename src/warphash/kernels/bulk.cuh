// Every bulk operation, written once for any design: what an element of a batch does from start to finish. How elements
// are spread over lanes or threads is the schedule's business (platform/schedule.cuh); where a key may live and how it
// gets there is the design's (designs/*.cuh).
//
//   find           value and presence of each key
//   probe_counts   how many buckets find reads for each key
//   settle         keys that are there, or fit into their first bucket without moving anybody: done; the rest: leftover
//   claim          of the elements with one key, one wins
//   place          puts a key into the table that no other element of the launch has
//   combine        applies an upsert to keys that are there
//   erase          turns a key's slot into a tombstone
//   scan           copies all pairs out
//   migrate        places the pairs of another table's slots
//   audit          counts buckets that break the rules of core/slot.cuh
//
// A task that leaves elements to another kernel, or copies them out, has kLists lists of unknown length: lists() says which
// a finished element goes into, enter() puts its entry at a place that the schedule has reserved, many at a time.
//
// Why an insert of keys that may repeat takes settle, claim and place. In a cuckoo table a key on the move is in no
// slot, so two copies of one new key cannot see each other while others are evicted. settle moves nobody: a copy of k
// either finds k, or goes for the first vacant slot of the *first* bucket of k. Slots only fill up meanwhile, so the
// copies of k swap against the same slot, or see the copy that won; and once that bucket is full without k it stays so,
// and every copy of k becomes a leftover. claim then leaves one leftover of each key, and place has only unique keys
// that are not in the table. (The seed asks the caller for unique keys: S4-42.)
#pragma once
#include "core/design.cuh"
#include "core/value.cuh"
#include "core/wide.cuh"
#include "platform/schedule.cuh"

namespace warphash {

template <class T>
WARPHASH_FN T* pointer(u64 address) {
  return reinterpret_cast<T*>(address);
}

WARPHASH_FN u32 element_of(const Batch& b, u64 i) {
  return b.indices ? load_once(pointer<const u32>(b.indices) + i) : static_cast<u32>(i);
}

template <class S>
WARPHASH_FN typename S::Word key_at(const Batch& b, u32 element) {
  return load_once(pointer<const typename S::Word>(b.keys) + element);
}

template <class S>
WARPHASH_FN typename S::Word value_at(const Batch& b, u32 element) {
  if constexpr (S::kHasValue) return load_once(pointer<const typename S::Word>(b.values) + element);
  return 0;
}

WARPHASH_FN void set_flag(const Batch& b, u32 element, u8 flag) {
  if (b.out_flags) store_once(pointer<u8>(b.out_flags) + element, flag);
}

// Slot i of many buckets in a row.
template <class S>
WARPHASH_FN typename S::Pair pair_at(u64 slots, u64 i) {
  return S::load(S::bucket_of(pointer<void>(slots), i / S::kSlots) + i % S::kSlots);
}

template <class S>
WARPHASH_FN void combine_hit(const Table& t, const Batch& b, u32 bucket, i32 slot, typename S::Word operand) {
  if (S::kApart && b.op > kReplace) acquire_fence();
  if constexpr (S::kHasValue) combine(S::value_of(S::at(t, bucket) + slot), operand, b.op, b.kind);
}

// ---- find
template <class D>
struct Find {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = true, kReads = true, kSuspends = false, kCounts = false;
  static constexpr bool kFrozen = true, kVacancy = false;
  static constexpr int kLists = 0;
  static constexpr int kPartBytes = 256;  // a bucket of that size is read whole: half of all absent keys need all of it
  struct State {
    Probe<S> probe;
    Word value_;
    bool found;
    WARPHASH_FN u32 bucket() const { return probe.bucket; }
    WARPHASH_FN Word key() const { return probe.named.key; }
  };
  WARPHASH_FN static i32 region(const Table& t) { return D::region(t); }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s = {Probe<S>::start(t, key_at<S>(b, static_cast<u32>(i))), static_cast<Word>(b.default_value), false};
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const Seen<S>& seen) {
    if (seen.hit < 0) return !D::advance(t, s.probe, seen);
    if (S::kHasValue && b.out_values) s.value_ = S::value_seen(S::at(t, s.probe.bucket) + seen.hit, seen.item);
    return s.found = true;
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool live, Tally&) {
    if (!live) return;
    if (S::kHasValue && b.out_values) store_once(pointer<Word>(b.out_values) + i, s.value_);
    set_flag(b, static_cast<u32>(i), s.found);
  }
};

// Any find, asked how many buckets it reads.
template <class Lookup>
struct ProbeCounts : Lookup {
  using S = typename Lookup::S;
  struct State : Lookup::State {
    u32 count;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.count = 0;
    return Lookup::start(t, b, i, s);
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const Seen<S>& seen) {
    ++s.count;
    return Lookup::step(t, b, s, seen);
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool live, Tally&) {
    if (live) store_once(pointer<u32>(b.out_counts) + i, s.count);
  }
};

// What a task says that lists some elements, by their numbers, for the next kernel.
struct ListsLeftover {
  static constexpr int kLists = 1;
  using Entry = u32;
  WARPHASH_FN static u64* length(const Batch& b, int) { return &report_of(b)->leftover; }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, Entry e) { pointer<u32>(b.leftover)[place] = e; }
};

// ---- settle
template <class D>
struct Settle : ListsLeftover {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = true, kReads = true, kSuspends = D::kMovesKeys, kCounts = true;
  static constexpr bool kFrozen = false, kVacancy = true;
  static constexpr int kPartBytes = 128;
  enum class Outcome { kOpen, kPresent, kInserted, kLeftover, kSuspended };
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
  // A homeless pair is in no bucket: its key would be taken for absent. The table is rebuilt first.
  WARPHASH_FN static bool suspend(State& s) {
    s.outcome = Outcome::kSuspended;
    return false;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const Seen<S>& seen) {
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
  WARPHASH_FN static bool lists(int, const State& s) { return s.outcome == Outcome::kLeftover; }
  WARPHASH_FN static u32 entry(const State& s) { return s.element; }

 private:
  using Pair = typename S::Pair;
  WARPHASH_FN static bool end(State& s, Outcome outcome) {
    s.outcome = outcome;
    return true;
  }
};

// ---- claim
// The claims are a set of elements, hashed by key with linear probing: an element that meets its own key there has lost.
// Relaxed: a claim is one word that names an element, and the keys do not change.
template <class D>
struct Claim {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 2;  // winners, losers
  struct State {
    u32 element;
    bool won;
  };
  WARPHASH_FN static u64 home(const Word& key) { return mix(static_cast<u64>(digest(key)) ^ 0x9e3779b97f4a7c15ull); }
  WARPHASH_FN static const void* hint(const Batch& b, u64 i) {
    return pointer<u32>(b.claims) + (home(key_at<S>(b, element_of(b, i))) & b.claim_mask);
  }
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    const Word key = key_at<S>(b, s.element);
    u32* claims = pointer<u32>(b.claims);
    for (u64 at = home(key);; ++at) {
      u32* claim = claims + (at & b.claim_mask);
      const u32 owner = compare_exchange_word(claim, kNowhere, s.element);
      s.won = owner == kNowhere;
      if (s.won || key_at<S>(b, owner) == key) return false;
    }
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally&) {
    if (live && !s.won) set_flag(b, s.element, kPresent);
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
template <class D>
struct Place {
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
  // Something is homeless already: this key may be placed, but not at the cost of another.
  WARPHASH_FN static bool suspend(State& s) {
    s.placement.may_evict = false;
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const Seen<S>& seen) {
    const u32 bucket = s.placement.bucket;
    s.outcome = D::step(t, s.placement, seen);
    if (s.outcome == Placed::kWasThere) combine_hit<S>(t, b, bucket, seen.hit, s.placement.hand.payload());
    return s.outcome != Placed::kGoesOn && s.outcome != Placed::kWantsSlab;
  }
  static constexpr bool kAllocates = S::kLinked;
  WARPHASH_FN static bool wants_slab(const State& s) { return s.outcome == Placed::kWantsSlab; }
  WARPHASH_FN static bool supply(const Table& t, State& s, u32 slab) {
    s.outcome = slab == kNoSlab ? Placed::kNoRoom : Placed::kGoesOn;
    if (slab != kNoSlab) D::link(t, s.placement, slab);
    return slab == kNoSlab;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    if constexpr (S::kLinked) D::end(t, s.placement);
    const bool homeless = s.outcome == Placed::kHomeless;  // another pair than ours, or ours after a while in the table
    const bool inserted = s.outcome == Placed::kInserted || homeless;
    tally.changed += inserted;
    if (homeless) {
      suspend_others(b);
      const u64 place = fetch_add(&report_of(b)->homeless, 1ull);
      if (place < kHomelessCapacity) pointer<typename S::Pair>(b.homeless)[place] = s.placement.hand;
    }
    const bool unplaced = s.outcome == Placed::kNoRoom;
    if (unplaced) atomic_add(&report_of(b)->unplaced, 1ull);
    set_flag(b, s.element, unplaced ? kUnplaced : inserted ? kChanged : kPresent);
  }
};

template <class D>
struct Migrate : Place<D> {
  using S = typename D::S;
  using typename Place<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const typename S::Pair item = pair_at<S>(b.keys, i);
    s.outcome = Placed::kWasThere;
    s.element = static_cast<u32>(i);
    if (!S::holds_key(item)) return false;
    const bool reserved = i / S::kSlots >= b.source_buckets;
    const typename S::Word key = reserved ? item.key + S::kBusy : item.key;
    return Place<D>::begin(t, b, s, static_cast<u32>(i), key, item.payload());
  }
};

// ---- combine, erase
// A find of elements that may be listed, in a table that others are changing.
template <class D, bool kWithOperand>
struct Seek : Find<D> {
  using S = typename D::S;
  struct State : Find<D>::State {
    u32 element;
  };
  static constexpr bool kCounts = true, kFrozen = false;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.probe = Probe<S>::start(t, key_at<S>(b, s.element));
    if constexpr (kWithOperand) s.value_ = value_at<S>(b, s.element);
    s.found = false;
    return true;
  }
};

template <class D>
struct Combine : Seek<D, true> {
  using S = typename D::S;
  using typename Seek<D, true>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const Seen<S>& seen) {
    if (seen.hit < 0) return !D::advance(t, s.probe, seen);
    combine_hit<S>(t, b, s.probe.bucket, seen.hit, s.value_);
    return s.found = true;
  }
  // Its winner may have found no room; then it waits for the rebuilt table with it.
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally&) {
    if (live && !s.found) set_flag(b, s.element, kUnplaced);
  }
};

template <class D>
struct Erase : Seek<D, false> {
  using S = typename D::S;
  static constexpr bool kErases = S::kLinked;  // kernels on lists count for themselves, all into one report
  using typename Seek<D, false>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const Seen<S>& seen) {
    if (seen.hit < 0) return !D::advance(t, s.probe, seen);
    // Values are frozen while keys are erased, so only another erase of this key can make the swap fail. A list may hold
    // the key again further on.
    s.found = S::vacate(S::at(t, s.probe.bucket) + seen.hit, seen.item);
    return s.found || !S::kLinked;
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally& tally) {
    (S::kLinked ? tally.erased : tally.changed) += live && s.found;
    if (live) set_flag(b, s.element, s.found);
  }
};

// ---- scan, audit
template <class D>
struct Scan {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 1;
  struct State {
    typename S::Pair item;
    bool reserved;
  };
  WARPHASH_FN static const void* hint(const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch&, u64 i, State& s) {
    s = {pair_at<S>(t.slots, i), i / S::kSlots >= t.buckets};
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}
  using Entry = State;
  WARPHASH_FN static u64* length(const Batch& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return S::holds_key(s.item); }
  WARPHASH_FN static Entry entry(const State& s) { return s; }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, Entry e) {
    if (place >= b.default_value) return;  // room in the output
    if (b.out_keys)
      store_once(pointer<Word>(b.out_keys) + place, static_cast<Word>(e.reserved ? e.item.key + S::kBusy : e.item.key));
    if (S::kHasValue && b.out_values) store_once(pointer<Word>(b.out_values) + place, e.item.payload());
  }
};

template <class D>
struct Audit {
  using S = typename D::S;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {
    u32 broken;
  };
  WARPHASH_FN static const void* hint(const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch&, u64 i, State& s) {
    const typename S::Item* slots = S::at(t, static_cast<u32>(i));
    const bool hashed = i < t.buckets;
    s.broken = 0;
    bool empty_before = false;
    for (int j = 0; j < S::kDataSlots; ++j) {
      const typename S::Item item = load_slot<false>(slots + j);
      const bool empty = S::is_empty(item);
      const bool busy = hashed && item.key == S::kBusy;
      const bool stray = !hashed && S::holds_key(item) && item.key > 2;
      s.broken += (empty_before && !empty) || busy || stray;
      empty_before = empty;
    }
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    if (live) tally.mismatches += s.broken;
  }
};

}  // namespace warphash
