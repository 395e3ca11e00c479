// The insert into subtables (subtables/lines.cuh).
//
//   settle         keys that are there, or fit into one of their buckets without moving another: done; the rest: leftover
//   claim          of the elements with one key, one wins (core/insert.cuh)
//   place          puts a key into the table that no other element of the launch has, and moves others for it
//
// An insert is settle, claim and place, for the reasons that core/insert.cuh gives. If the caller vouches for distinct
// new keys, an insert is settle and place. No value changes until all keys have a place: combine comes last, so a batch
// that does not fit has changed no value.
//
// settle, keys of one word, takes no lock.
//   1. From the key's first bucket on, look at each bucket until one is not full; behind that one, only where a find
//      would look.
//   2. Swap the key into the first vacant slot of the bucket that was not full. If the swap fails, look at the bucket
//      again.
//   3. Write the value, which no thread reads before the kernel ends.
// Slots only fill meanwhile, in order, and a bucket that is full without the key stays so. So the copies of a key go
// for the same slot, or see the copy that won.
//
// settle, wider keys. No atomic swaps a wider key whole, and a look at a slot that is being written may see words of
// two keys. Such a key goes into its first bucket only, under the lock. If there may be a copy, all slots are read
// again under the lock. A key with a word like a mark's that seems to be there is confirmed under the lock, too
// (core/wide.cuh).
//
// An insert that no host waits for (storage/subtables/pending.py). `place` then adopts the pairs that find no slot:
// they become displaced pairs of the table, and the host places them later. The host may launch the next `settle`
// before it knows of these pairs. That settle finds the signals of core/report.cuh set, and does nothing.
//
// place moves keys, so it changes nothing without the lock of the bucket (designs/dynamic_cuckoo.cuh): a victim leaves
// together with its value.
#pragma once
#include "core/insert.cuh"
#include "subtables/bulk.cuh"

namespace warphash {

// ---- settle
template <class D>
struct SettlePair : Settling {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kSuspends = true, kSeesWhere = S::kWide, kCountsSubtables = true;
  static constexpr u32 kThreads = 128, kBlocks = S::kWide ? 4 : 8;  // on a processor: the more lanes look, the better
  // The value lies apart from the key, and a CPU's next swap waits for all stores before it. So the place of the value
  // is prefetched. If the walk ends at that bucket, the element looks at the slot once more, when the place is in the
  // cache.
  static constexpr bool kAsksForPlace = kPrefetches && !S::kWide && S::kValueBytes != 0;
  struct State {
    SubtableProbe<S> probe;
    u32 element;
    u32 goes_to;        // the first bucket with a vacant slot, or kNowhere; of a wide key, its first bucket
    u32 slot : 8;       // and the number of the slot
    u32 used : 1;       // the slot has surely held a key before
    u32 overflows : 1;  // the bucket is not in the key's first subtable
    u32 walked : 1;     // all buckets were looked at, and now goes_to again
    u32 looked_twice : 1;
    Outcome outcome;
    WARPHASH_FN u32 bucket() const { return probe.bucket; }
    WARPHASH_FN const Word& key() const { return probe.named.key; }
  };
  WARPHASH_FN static i32 region(const Table& t) { return D::region(t); }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 element = element_of(b, i);
    s = {SubtableProbe<S>::start(t, key_at<S>(b, element)), element, kNowhere, 0, 0, 0, 0, 0, Outcome::kOpen};
    if (b.unique)
      s.probe.want_room_alone();
    else if (!t.early_exit)
      s.probe.ask(t);  // the words of filters come while the first line does
    if (S::kWide) s.goes_to = s.probe.bucket;
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (seen.hit >= 0) {
      s.outcome = is_like_mark(s.probe.named.key) ? confirm(t, s, seen.hit) : Outcome::kPresent;
      return s.outcome != Outcome::kOpen;
    }
    if (!S::kWide && seen.vacant < S::kSlots && (s.walked || s.goes_to == kNowhere)) {
      if (!s.walked) s.overflows = !s.probe.at_first(t);
      s.goes_to = s.probe.bucket;
      s.slot = static_cast<u32>(seen.vacant);
      s.used = !seen.open;
      if (kAsksForPlace) prefetch(S::value_at(t, s.goes_to, s.slot));
    } else if (!S::kWide && s.walked) {  // the bucket filled up: the key goes to another, where a copy may be
      s.goes_to = kNowhere;
      s.walked = false;
      s.probe.leave_for_good(t);
    }
    if (!s.walked && s.probe.advance(t, seen, s.goes_to == kNowhere)) return false;
    if (kAsksForPlace && !s.walked && s.goes_to == s.probe.bucket) {
      s.walked = s.looked_twice = true;
      return false;
    }
    s.walked = true;
    s.outcome = s.goes_to == kNowhere ? Outcome::kLeftover : S::kWide ? insert_wide(t, b, s, seen) : insert(t, b, s);
    s.probe.bucket = s.goes_to;
    return s.outcome != Outcome::kOpen;
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64, State& s, bool live, Tally& tally) {
    const bool inserted = live && s.outcome == Outcome::kInserted;
    if (inserted) count(tally, s.goes_to);
    if (inserted && s.looked_twice) --tally.probes;  // at one bucket, which counts once
    if (live) set_flag(b, s.element, inserted ? kChanged : s.outcome == Outcome::kLeftover ? kUnplaced : kPresent);
  }

 private:
  // Relaxed: the swap publishes the key alone, and the end of the kernel the value.
  WARPHASH_FN static Outcome insert(const Table& t, const Batch& b, const State& s) {
    if constexpr (!S::kWide) {
      Word* const slot = &(S::at(t, s.goes_to) + s.slot)->key;
      const Word& key = s.probe.named.key;
      // Of a bucket that has an empty slot, the first vacant one may also be a tombstone.
      const Word expected = s.used ? S::kTombstone : S::kEmpty;
      const Word old = compare_exchange_word(slot, expected, key);
      if (old != expected && !(is_mark(old, 1) && compare_exchange_word(slot, old, key) == old)) return Outcome::kOpen;
      D::Value::put(S::value_at(t, s.goes_to, s.slot), D::Value::of(b, s.element, S::value_bytes(t)),
                    S::value_bytes(t));
      if (s.overflows) OverflowFilter::of<S>(t, subtable_of(s.goes_to), key).add();
      return Outcome::kInserted;
    }
    return Outcome::kOpen;
  }
  // Reads all slots for a copy of the key. Where keys do not repeat, reads only the slots from the first one that was
  // vacant, until one is vacant now.
  WARPHASH_FN static Outcome insert_wide(const Table& t, const Batch& b, const State& s, const BucketView<S>& seen) {
    const i32 first = b.unique ? seen.vacant : 0;
    if (first == S::kSlots) return Outcome::kLeftover;
    u32* const lock = S::lock_at(t, s.goes_to);
    if (!try_lock(lock)) return Outcome::kOpen;
    i32 vacant = S::kSlots;
    bool there = false;
    for (i32 j = first; j < S::kSlots && !(b.unique && vacant < S::kSlots); ++j) {
      const Word found = load_relaxed(&(S::at(t, s.goes_to) + j)->key);
      there |= found == s.probe.named.key;
      if (vacant == S::kSlots && is_mark(found, 1)) vacant = j;
    }
    const bool fits = !there && vacant < S::kSlots;
    if (fits)
      D::put(t, s.goes_to, static_cast<u32>(vacant), s.probe.named.key, D::Value::of(b, s.element, S::value_bytes(t)));
    unlock(lock);
    return there ? Outcome::kPresent : fits ? Outcome::kInserted : Outcome::kLeftover;
  }
  // Whether the slot indeed holds the wide key. If not, the element looks at the bucket again.
  WARPHASH_FN static Outcome confirm(const Table& t, const State& s, i32 slot) {
    u32* const lock = S::lock_at(t, s.probe.bucket);
    if (!try_lock(lock)) return Outcome::kOpen;
    const bool there = load_relaxed(&(S::at(t, s.probe.bucket) + slot)->key) == s.probe.named.key;
    unlock(lock);
    return there ? Outcome::kPresent : Outcome::kOpen;
  }
};

// ---- claim
// settle mostly leaves a few elements.
template <class D>
struct ClaimLeftover : Claim<D> {
  static constexpr bool kRefills = true, kCounts = false;
};

// ---- place
template <class D>
struct PlacePair {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = true, kReads = true, kSuspends = true, kCounts = true;
  static constexpr bool kFrozen = false, kVacancy = true, kCountsSubtables = true, kRefills = true;
  static constexpr u32 kBlocks =
      S::kValueBytes == kRow || S::kWide ? 4 : 7;  // of 128 threads on a processor: fewer registers spill
  static constexpr int kLists = 0, kPartBytes = 128;
  struct State {
    typename D::Placement placement;
    u32 element;
    Placed outcome;
    WARPHASH_FN u32 bucket() const { return placement.bucket; }
    WARPHASH_FN const Word& key() const { return placement.key; }
  };
  WARPHASH_FN static i32 region(const Table&) { return 0; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const u32 e = element_of(b, i);
    const auto probe = SubtableProbe<S>::start(t, key_at<S>(b, e));
    const u64 bytes = S::value_bytes(t);
    u8* const spare = pointer<u8>(b.spare_values) + (S::kValueBytes == kRow ? e * bytes : 0);
    const u32 closed = static_cast<u32>(b.closed) - 1, first = subtable_of(probe.bucket);
    const u32 bucket =
        first == closed ? bucket_in(t, D::next(t, first, closed), digest(t, probe.named.key)) : probe.bucket;
    s = {{probe.named.key, D::Value::of(b, e, bytes), spare, bucket, random_start(b.random, e), 0, closed,
          probe.named.reserved, true},
         e,
         Placed::kGoesOn};
    return true;
  }
  // A pair is displaced already: this key may be placed, but not at the cost of another.
  WARPHASH_FN static bool suspend(State& s) {
    s.placement.may_evict = false;
    return true;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    s.outcome = D::step(t, s.placement, seen);
    return s.outcome != Placed::kGoesOn;
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    // The pair that this chain evicted last, another or ours; or our pair, adopted without a slot.
    const bool displaced = s.outcome == Placed::kDisplaced || (s.outcome == Placed::kNoRoom && b.adopts);
    const bool inserted = s.outcome == Placed::kInserted || displaced;
    if (s.outcome == Placed::kInserted) count(tally, s.placement.bucket);
    if (displaced) ++tally.changed, list_displaced(t, b, s.placement);
    const bool unplaced = s.outcome == Placed::kNoRoom && !b.adopts;
    if (unplaced) atomic_add(&report_of(b)->unplaced, 1ull);
    set_flag(b, s.element, unplaced ? kUnplaced : inserted ? kChanged : kPresent);
  }
  WARPHASH_FN static void list_displaced(const Table& t, const Batch& b, const typename D::Placement& p) {
    suspend_others(b);
    const u64 place = fetch_add(&report_of(b)->displaced, 1ull);
    if (place >= kDisplacedCapacity) return;
    pointer<Word>(b.displaced)[place] = p.key;
    const u64 bytes = S::value_bytes(t);
    D::Value::put(pointer<u8>(b.displaced_values) + place * bytes, p.value, bytes);
  }
};

}  // namespace warphash
