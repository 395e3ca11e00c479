// Every bulk operation on subtables (subtables/lines.cuh) but the insert (subtables/insert.cuh): a task says what an
// element of a batch does from start to finish.
//
//   find           value and presence of each key
//   probe_counts   how many buckets find reads for each key
//   guest_counts   and how many words of overflow filters
//   combine        applies an upsert to the keys that were there before
//   erase          turns a key's slot into a tombstone
//   scan           copies all pairs out
//   audit          counts buckets that break the rules
//   hand_over      copies the counts of a report to the host
//
// erase swaps a key of one word for a tombstone, and takes the lock for a wider key: of two elements with one key, only
// one erases the key. No thread writes while find or scan run.
//
// A host that does not wait for an insert (subtables/insert.cuh) may launch a find or an erase behind it, before the
// host knows whether pairs are displaced. A find is given the list of displaced pairs, and looks there for a key that
// is in no bucket. An erase does nothing if a pair is displaced. The host then places the pairs, and launches the erase
// again.
#pragma once
#include "core/bulk.cuh"
#include "core/straight.cuh"
#include "subtables/lines.cuh"

namespace warphash {

// Counts a key that came into a bucket, or left it. Keys of subtables are counted for each, reserved keys together.
WARPHASH_FN void count(Tally& tally, u32 bucket) {
  if (subtable_of(bucket) == kReservedSubtable)
    ++tally.changed;
  else
    tally.placed.add(subtable_of(bucket));
}

// ---- find
template <class D>
struct FindPair {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename D::Value::Word;
  static constexpr bool kProbes = true, kReads = true, kSuspends = false, kCounts = false;
  static constexpr bool kFrozen = true, kVacancy = false;
  static constexpr int kLists = 0, kPartBytes = 128;
  // Fewer blocks leave more registers to each thread. The copy of a row takes them, and a value wider than its key;
  // otherwise some would be spilled.
  static constexpr u32 kBlocks = S::kValueBytes != kRow ? (sizeof(Value) > sizeof(Word) ? 8 : 0)
                                 : sizeof(Word) <= 32   ? 7
                                                        : 1;
  struct State {
    SubtableProbe<S> probe;
    Value value;
    bool found;
    WARPHASH_FN u32 bucket() const { return probe.bucket; }
    WARPHASH_FN const Word& key() const { return probe.named.key; }
  };
  WARPHASH_FN static i32 region(const Table& t) { return D::region(t); }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s = {SubtableProbe<S>::start(t, key_at<S>(b, static_cast<u32>(i))), static_cast<Value>(b.default_value), false};
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (seen.hit < 0) {
      if (kPrefetches) s.found = false;
      if (s.probe.advance(t, seen)) return false;
      if (b.displaced && suspended(b, subtable_of(s.probe.bucket))) look_among_displaced(t, b, s);
      return true;
    }
    if (b.out_values) {
      const u8* at = S::value_at(t, s.probe.bucket, static_cast<u32>(seen.hit));
      if (kPrefetches && S::kValueBytes != 0 &&
          !s.found) {  // the value lies apart, and is in the cache by the next look
        prefetch(at);
        s.found = true;
        return false;
      }
      if constexpr (S::kValueBytes == kRow)
        s.value = reinterpret_cast<u64>(at);
      else if constexpr (S::kValueBytes > 0)
        s.value = load_slot<true>(reinterpret_cast<const Value*>(at));
    }
    return s.found = true;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64 i, State& s, bool live, Tally&) {
    if constexpr (S::kValueBytes == kRow)
      if (b.out_values)
        copy_rows(pointer<u8>(b.out_values) + i * t.value_bytes, pointer<const u8>(s.value), live, t.value_bytes);
    if (!live) return;
    if constexpr (S::kValueBytes > 0)
      if (b.out_values) store_once(pointer<Value>(b.out_values) + i, s.value);
    set_flag(b, static_cast<u32>(i), s.found);
  }

 private:
  // There are few displaced pairs, in no order. A reserved key is never displaced: its bucket has a slot for it.
  WARPHASH_FN static void look_among_displaced(const Table& t, const Batch& b, State& s) {
    const u64 displaced = subtable_of(s.probe.bucket) == kReservedSubtable ? 0 : load_relaxed(&report_of(b)->displaced);
#pragma unroll 1
    for (u64 j = 0; j < displaced && !s.found; ++j) {
      s.found = pointer<const Word>(b.displaced)[j] == s.probe.named.key;
      const u64 at = b.displaced_values + j * S::value_bytes(t);
      if (!s.found) continue;
      if constexpr (S::kValueBytes == kRow)
        s.value = at;
      else if constexpr (S::kValueBytes > 0)
        s.value = *pointer<const Value>(at);
    }
  }
};

// A find that counts the words of overflow filters that it reads.
template <class D>
struct FilterCounts : ProbeCounts<FindPair<D>> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename ProbeCounts<FindPair<D>>::State;
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    const bool asked = s.probe.asked;
    const u32 unsure = bit_count(s.probe.left & ~s.probe.wanted);
    const bool done = FindPair<D>::step(t, b, s, seen);
    if (kReadsFilters && s.probe.asked && !asked) s.count += unsure;
    return done;
  }
};

// ---- combine, erase
// A find of elements that may be listed, in a table that others are changing.
template <class D>
struct SeekPair {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = true, kReads = true, kSuspends = false, kCounts = true;
  static constexpr bool kFrozen = false, kVacancy = false;
  static constexpr int kLists = 0, kPartBytes = 128;
  struct State {
    SubtableProbe<S> probe;
    u32 element;
    bool found;
    WARPHASH_FN u32 bucket() const { return probe.bucket; }
    WARPHASH_FN const Word& key() const { return probe.named.key; }
  };
  WARPHASH_FN static i32 region(const Table& t) { return D::region(t); }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 e = element_of(b, i);
    s = {SubtableProbe<S>::start(t, key_at<S>(b, e)), e, false};
    return true;
  }
};

template <class D>
struct CombinePair : SeekPair<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename SeekPair<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    return pointer<const u8>(b.out_flags)[element_of(b, i)] != kChanged && SeekPair<D>::start(t, b, i, s);
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (seen.hit < 0) return !s.probe.advance(t, seen);
    u8* const at = S::value_at(t, s.probe.bucket, static_cast<u32>(seen.hit));
    if constexpr (S::kValueBytes == kRow)
      return combine_row(t, b, s, at);
    else if constexpr (S::kValueBytes > 0) {
      using Value = typename D::Value::Word;
      combine(reinterpret_cast<Value*>(at), D::Value::of(b, s.element, 0), b.op, b.kind);
    }
    return true;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}

 private:
  // Under the lock: of several values for one key, one wins whole.
  WARPHASH_FN static bool combine_row(const Table& t, const Batch& b, const State& s, u8* at) {
    const u64 bytes = t.value_bytes;
    const u8* const operand = pointer<const u8>(b.values) + s.element * bytes;
    u32* const lock = S::lock_at(t, s.probe.bucket);
    if (!try_lock(lock)) return false;
    if (b.op == kReplace)
      copy_row(at, operand, bytes);
    else if (bytes == 4)
      combine(reinterpret_cast<u32*>(at), *reinterpret_cast<const u32*>(operand), b.op, b.kind);
    else if (bytes == 8)
      combine(reinterpret_cast<u64*>(at), *reinterpret_cast<const u64*>(operand), b.op, b.kind);
    unlock(lock);
    return true;
  }
};

template <class D>
struct ErasePair : SeekPair<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename SeekPair<D>::State;
  static constexpr bool kSuspends = true, kCountsSubtables = true;
  static constexpr u32 kThreads = 128, kBlocks = sizeof(typename S::Word) == 4 ? 9 : 0;
  // A pair of the batch before is displaced, and may have this key. The host places the pair, then erases again.
  WARPHASH_FN static bool suspend(State&) { return false; }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    if (seen.hit < 0) return !s.probe.advance(t, seen);
    auto* const slot = &(S::at(t, s.probe.bucket) + seen.hit)->key;
    if constexpr (S::kWide) {
      u32* const lock = S::lock_at(t, s.probe.bucket);
      if (!try_lock(lock)) return false;
      s.found = load_relaxed(slot) == s.probe.named.key;
      if (s.found) store_relaxed(slot, S::kTombstone);
      unlock(lock);
      return s.found;  // otherwise the look saw words of two keys: look again
    } else {
      // Only another erase of this key can make the swap fail.
      s.found = compare_exchange_word(slot, s.probe.named.key, S::kTombstone) == s.probe.named.key;
      return true;
    }
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    if (s.found) count(tally, s.probe.bucket);
    set_flag(b, s.element, s.found);
  }
};

// ---- hand_over
// Copies the counts at `report` to `answer`, one word per element. If `restarts` says so, the counts start again from
// zero, but for the number of displaced pairs, which a find behind the insert reads. A copy and a fill of the driver's
// took 10 us of a batch, and for most of that time the device was idle (docs/performance/subtables.md).
struct HandOver : Straight<SubtableTable, SubtableBatch> {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    u64* const word = pointer<u64>(b.report) + i;
    pointer<u64>(b.answer)[i] = *word;
    if (b.restarts && word != &report_of(b)->displaced) *word = 0;
    return false;
  }
};

// ---- scan, audit: of one subtable, `subtable`, whose slots or buckets are the elements
template <class D>
struct ScanSubtable {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 1;
  struct State {
    Word key;
    const u8* value;
    u64 value_bytes;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 bucket = bucket_named(static_cast<u32>(b.subtable), static_cast<u32>(i / S::kSlots));
    const u32 slot = static_cast<u32>(i % S::kSlots);
    s = {load_relaxed(&(S::at(t, bucket) + slot)->key), S::value_at(t, bucket, slot), S::value_bytes(t)};
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}
  using Entry = State;
  WARPHASH_FN static u64* length(const Batch& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return S::holds_key(typename S::Item{s.key}); }
  WARPHASH_FN static Entry entry(const State& s) { return s; }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, const Entry& e) {
    if (place >= b.room) return;
    if (b.out_keys)
      store_once(pointer<Word>(b.out_keys) + place, b.subtable == kReservedSubtable ? mark_of_name(e.key) : e.key);
    if (S::kValueBytes != 0 && b.out_values)
      copy_row(pointer<u8>(b.out_values) + place * e.value_bytes, e.value, e.value_bytes);
  }
};

// A bucket is sound if its empty slots come last, its keys belong there and are found there, and its lock is free.
template <class D>
struct AuditSubtable {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {
    u32 broken;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 bucket = bucket_named(static_cast<u32>(b.subtable), static_cast<u32>(i));
    s.broken = load_relaxed(S::lock_at(t, bucket)) != 0;
    bool empty_before = false;
    for (int j = 0; j < S::kSlots; ++j) {
      const typename S::Item item = {load_relaxed(&(S::at(t, bucket) + j)->key)};
      const bool empty = S::is_empty(item);
      s.broken += empty_before && !empty;
      empty_before = empty;
      if (!S::holds_key(item)) continue;
      if (b.subtable == kReservedSubtable)
        s.broken += number_of_name(item.key) > 2 || S::reserved_bucket(item.key) != bucket;
      else
        s.broken +=
            bucket_in(t, static_cast<u32>(b.subtable), digest(t, item.key)) != bucket || !is_found(t, bucket, item.key);
    }
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    if (live) tally.mismatches += s.broken;
  }

 private:
  WARPHASH_FN static bool is_found(const Table& t, u32 bucket, const Word& key) {
    const bool is_routed_here = Route::of(t, digest(t, key)).possible >> subtable_of(bucket) & 1;
    const OverflowFilter filter = OverflowFilter::of<S>(t, subtable_of(bucket), digest(t, key));
    return is_routed_here || filter.may_hold(load_relaxed(filter.word));
  }
};

}  // namespace warphash
