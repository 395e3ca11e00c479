// Every bulk operation but the insert, and what all of them share, written once for any design: a task says what an
// element of a batch does from start to finish. The schedule spreads elements over lanes or threads (core/cpu,
// core/gpu). The design says where a key may live and how it gets there (designs/*.cuh).
//
//   find           value and presence of each key
//   probe_counts   how many buckets find reads for each key
//   combine        applies an upsert to keys that are there
//   erase          turns a key's slot into a tombstone
//   scan           copies all pairs out
//   audit          counts buckets that break the rules of core/slot.cuh
//
// A task that leaves elements to another kernel, or copies them out, has kLists lists of unknown length. lists() says
// which lists a finished element goes into. The schedule reserves places in a list, many at a time, and enter() puts
// the entry of an element at its place.
#pragma once
#include "core/design.cuh"
#include "core/report.cuh"
#include "core/value.cuh"
#include "core/wide.cuh"

namespace warphash {

template <class T>
WARPHASH_FN T* pointer(u64 address) {
  return reinterpret_cast<T*>(address);
}

WARPHASH_FN u32 element_of(const Launch& b, u64 i) {
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
WARPHASH_FN void combine_hit(const typename S::Table& t, const Batch& b, u32 bucket, i32 slot,
                             typename S::Word operand) {
  if (S::kApart && b.op > kReplace) acquire_fence();
  if constexpr (S::kHasValue) combine(S::value_of(S::at(t, bucket) + slot), operand, b.op, b.kind);
}

// ---- find
template <IsDesign D>
struct Find {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
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
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
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

// A find that counts the buckets that it reads.
template <class Lookup>
struct ProbeCounts : Lookup {
  using Table = typename Lookup::Table;
  using Batch = typename Lookup::Batch;
  using S = typename Lookup::S;
  struct State : Lookup::State {
    u32 count;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.count = 0;
    return Lookup::start(t, b, i, s);
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    ++s.count;
    return Lookup::step(t, b, s, seen);
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool live, Tally&) {
    if (live) store_once(pointer<u32>(b.out_counts) + i, s.count);
  }
};

// ---- combine, erase
// A find of elements that may be listed, in a table that other threads are changing.
template <class D, bool kWithOperand>
struct Seek : Find<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
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
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename Seek<D, true>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (seen.hit < 0) return !D::advance(t, s.probe, seen);
    combine_hit<S>(t, b, s.probe.bucket, seen.hit, s.value_);
    return s.found = true;
  }
  // A key that is absent is that of a winner that found no room. Both wait for the rebuilt table.
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally&) {
    if (live) set_flag(b, s.element, s.found ? kPresent : kUnplaced);
  }
};

template <class D>
struct Erase : Seek<D, false> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  // For 16 slots of 8 + 8 bytes the compiler takes 57 registers, where 56 leave room for a block more: 9.2 G/s and 10.6
  // (H200). Other buckets would spill.
  static constexpr bool kTightens = D::kMovesKeys && S::kSlots == 16 && S::kBucketBytes == 256;
  static constexpr u32 kThreads = 128, kBlocks = S::kLinked ? 1 : kTightens ? 9 : 0;
  static constexpr bool kErases = S::kLinked;  // all kernels on a table of lists count into one report
  using typename Seek<D, false>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    if (seen.hit < 0) return !D::advance(t, s.probe, seen);
    // No value changes while keys are erased, so only another erase of this key can make the swap fail. A list may hold
    // the key a second time further on.
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
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 1;
  struct State {
    typename S::Pair item;
    bool reserved;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
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
    if (place >= b.room) return;
    if (b.out_keys)
      store_once(pointer<Word>(b.out_keys) + place, static_cast<Word>(e.reserved ? e.item.key + S::kBusy : e.item.key));
    if (S::kHasValue && b.out_values) store_once(pointer<Word>(b.out_values) + place, e.item.payload());
  }
};

template <class D>
struct Audit {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {
    u32 broken;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
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
