// The placing of keys in their bucket, by a block that has the bucket for itself: round-synchronous cuckoo hashing.
//
//   place       adds the elements that `link` has listed for the bucket
//   place_all   arranges the pairs that `scatter` has brought to the front of the bucket's range
//   move        arranges the pairs of a bucket in another range
//
// Layout of the memory that the block shares, for pairs p and slots s of the bucket:
//   pairs   all pairs of the bucket, those that are new last
//   slots   for each slot the number of its pair; kNobody; or kErased, a tombstone that a find walks past
//   hand    for each pair that has no slot the number of a pair: its own first, later those that it has displaced
//
// Protocol:
//   1. Gather the pairs. New pairs are in hand.
//   2. Round r, all threads at once: each pair in hand goes to the slot that function r mod m gives it, and what was
//      there, from before or from this round, comes into the hand. A pair that meets a copy of itself replaces it.
//      Barrier. Until no pair is in hand, or r is round_limit.
//   3. If pairs are left in hand, no layout was found: draw new seeds for this bucket alone, take all its pairs into
//      the hand, and go to 2; at most seed_limit times.
//   4. Take out the second copy of a key, of which one subtable may have one each.
//   5. Write the range, and the seed. If there is no layout, write neither: the bucket is what it was, its new elements
//      are unplaced, and its counter is kBucketFailed.
//
// So a displaced pair is only ever in the memory of the block, and nothing but a whole bucket is published. An insert
// that fails, or a host that stops between two kernels, leaves no key without a slot.
//
// Why indices. A pair of 8 + 8 bytes has no atomic exchange in shared memory, its number has. And the pairs stay where
// they are for the next set of seeds.
//
// Why subtables. In a round all pairs go to one subtable, and the displaced ones all go to the next. A pair cannot lose
// its slot to one that is a function behind, which is what the authors call the order h_0(k), h_1(k), …. The
// share of keys that keep the first slot is then (1 - e^-x) / x, x = m times the load factor: 72 percent at 0.35 and
// m = 2, where the authors report about 70.
//
// Memory order: relaxed. Barriers order the rounds of a block; no other block has the bucket; the end of the kernel
// publishes the range.
#pragma once
#include "two_level/insert.cuh"

namespace warphash {

constexpr u32 kPlacingThreads = 256;  // for which a launch counts one bucket (storage/two_level/array.py)

template <class D>
struct Placing {
  using S = typename D::S;
  using Word = typename S::Word;
  using Item = typename S::Item;
  static constexpr u32 kNobody = ~0u, kErased = ~1u;
  static constexpr u16 kNone = 0xFFFF;
  struct Number {
    u32 pair;
  };
  struct Memory {
    Item pairs[kMostRangeSlots];
    Number slots[kMostRangeSlots];
    u16 hand[kMostRangeSlots];
    u32 count;    // pairs gathered
    u32 listed;   // elements of the list
    u32 dropped;  // copies of keys
    u32 left[3];  // whether a pair is in hand after a round
  };

  const TwoLevelTable& t;
  const TwoLevelBatch& b;
  Memory& m;
  const u32 id, threads;
  u32 exchanges;
  u32 mark;  // of thread 0: what becomes of the counter of a bucket that has a layout

  WARPHASH_FN Placing(const TwoLevelTable& table, const TwoLevelBatch& batch, void* memory)
      : t(table),
        b(batch),
        m(*static_cast<Memory*>(memory)),
        id(thread_in_block()),
        threads(threads_in_block()),
        exchanges(0),
        mark(kNoElement) {}

  // Takes the pairs of a range, and where they are.
  WARPHASH_FN void gather(const Range& range) {
    if (id == 0) m.count = 0;
    block_barrier();
    for (u32 s = id; s < range.slots; s += threads) {
      const Item item = load_slot<false>(Ranges<S>::slots(range) + s);
      u32 number = S::is_empty(item) ? kNobody : kErased;
      if (S::holds_key(item)) {
        number = fetch_add(&m.count, 1u);
        m.pairs[number] = item;
      }
      m.slots[s] = {number};
    }
    block_barrier();
  }

  WARPHASH_FN void vacate(const Range& range) {
    for (u32 s = id; s < range.slots; s += threads) m.slots[s] = {kNobody};
  }

  // Finds slots for the pairs from `first` on; false if some are left after the last round.
  WARPHASH_FN bool find_slots(const Range& range, u32 first, u32 n) {
    const u32 end = Ranges<S>::subtable_slots(t, range);
    for (u32 i = first + id; i < n; i += threads) m.hand[i] = static_cast<u16>(i);
    if (id == 0) m.left[0] = m.dropped = 0;
    block_barrier();
    u32 function = 0;
    for (u32 r = 0; r < t.round_limit; ++r) {
      bool holds = false;
      for (u32 i = first + id; i < n; i += threads) {
        if (m.hand[i] == kNone) continue;
        const u32 pair = m.hand[i];
        const Word key = m.pairs[pair].key;
        const u32 at = function * end + D::slot_of(t, key, range.seed, function, end);
        const u32 other = exchange(m.slots + at, Number{pair}).pair;
        const bool copy = other < kErased && m.pairs[other].key == key;
        if (copy) atomic_add(&m.dropped, 1u);
        const bool displaced = other < kErased && !copy;
        m.hand[i] = displaced ? static_cast<u16>(other) : kNone;
        holds |= displaced;
        ++exchanges;
      }
      if (ballot(holds) && lane() == 0) fetch_or(m.left + r % 3, 1u);
      if (id == 0) m.left[(r + 1) % 3] = 0;
      block_barrier();
      if (!m.left[r % 3]) return true;
      if (++function == t.hashes) function = 0;
    }
    return false;
  }

  // As find_slots, under other seeds if those of the range do not do; `range` has the seed that did.
  WARPHASH_FN bool arrange(Range& range, u32 first, u32 n) {
    const u32 end = Ranges<S>::subtable_slots(t, range);
    if (n > end * static_cast<u32>(t.hashes)) return false;
    for (u32 tries = 0; tries < t.seed_limit; ++tries) {
      if (find_slots(range, first, n)) return true;
      block_barrier();  // before the next round 0 writes `left`
      range.seed = mix(range.seed + 0x9e3779b9u);
      first = 0;
      vacate(range);
    }
    return false;
  }

  // Leaves the first copy of each key. One subtable after another, so no slot is read that another thread may empty.
  WARPHASH_FN void drop_copies(const Range& range) {
    const u32 end = Ranges<S>::subtable_slots(t, range);
    for (u32 last = 1; last < t.hashes; ++last) {
      for (u32 s = last * end + id; s < (last + 1) * end; s += threads) {
        const u32 pair = m.slots[s].pair;
        if (pair < kErased && has_copy_before(range, m.pairs[pair].key, last, end)) {
          m.slots[s] = {kErased};
          atomic_add(&m.dropped, 1u);
        }
      }
      block_barrier();
    }
  }

  // Whether a subtable before `last` has the key.
  WARPHASH_FN bool has_copy_before(const Range& range, Word key, u32 last, u32 end) const {
    for (u32 function = 0; function < last; ++function) {
      const u32 other = m.slots[function * end + D::slot_of(t, key, range.seed, function, end)].pair;
      if (other < kErased && m.pairs[other].key == key) return true;
    }
    return false;
  }

  WARPHASH_FN Item item_of(u32 number) const {
    return number < kErased ? m.pairs[number] : number == kErased ? S::tombstone() : S::empty();
  }

  // Writes the slots that are not what they were.
  WARPHASH_FN void write_changes(const Range& range) {
    Item* const slots = Ranges<S>::slots(range);
    for (u32 s = id; s < range.slots; s += threads) {
      const Item item = item_of(m.slots[s].pair), old = load_slot<false>(slots + s);
      if (old.key != item.key || old.payload() != item.payload()) slots[s] = item;
    }
  }

  WARPHASH_FN void write_all(const Range& range) {
    Item* const slots = Ranges<S>::slots(range);
    for (u32 s = id; s < range.slots; s += threads) slots[s] = item_of(m.slots[s].pair);
  }

  WARPHASH_FN void write_nothing(const Range& range, u32 first) {
    Item* const slots = Ranges<S>::slots(range);
    for (u32 s = first + id; s < range.slots; s += threads) slots[s] = S::empty();
  }

  // Ends the bucket: its counter, its entry in the directory, and what the block counts.
  WARPHASH_FN void close(u32 bucket, const Range& range, u32 added, u32 failed) {
    if (b.count_probes && exchanges) atomic_add(&count_line(b, bucket).probes, static_cast<u64>(exchanges));
    if (id != 0) return;
    *Ranges<S>::counter(t, bucket) = failed ? kBucketFailed : mark;
    if (failed) {
      atomic_add(&report_of(b)->unplaced, static_cast<u64>(failed));
      return;
    }
    *Ranges<S>::entry(t, bucket) = RangeEntry::of(range);
    atomic_add(&count_line(b, bucket).changed, static_cast<u64>(added - m.dropped));
  }
};

template <class D>
struct PlaceInBuckets : OverRanges {
  static constexpr u64 kMemoryBytes = sizeof(typename Placing<D>::Memory);
  using S = typename D::S;
  using Item = typename S::Item;

  WARPHASH_FN static void run_block(const TwoLevelTable& t, const TwoLevelBatch& b, u64 number, void* memory) {
    if (number >= *pointer<const u64>(b.touched_count)) return;
    const u32 bucket = pointer<const u32>(b.touched)[number];
    Range range = Ranges<S>::entry(t, bucket)->range();
    Placing<D> placing(t, b, memory);
    auto& m = placing.m;
    placing.gather(range);
    const u32 old = m.count;
    if (placing.id == 0) m.listed = collect(t, b, bucket, placing, old);
    block_barrier();
    const u32 added = m.listed, n = old + added;
    bool fits = n <= kMostRangeSlots;
    if (fits) {
      for (u32 i = old + placing.id; i < n; i += placing.threads) {
        const u32 element = static_cast<u32>(m.pairs[i].key);
        m.pairs[i] = Item::make(key_at<S>(b, element), value_at<S>(b, element));
        set_flag(b, element, kChanged);
      }
      fits = placing.arrange(range, old, n);
    }
    if (fits) {
      placing.drop_copies(range);
      placing.write_changes(range);
    } else {
      block_barrier();  // behind the flags
      if (placing.id == 0) refuse(t, b, bucket);
    }
    placing.close(bucket, range, added, fits ? 0 : added);
  }

 private:
  // Puts the numbers of the bucket's elements behind its pairs, as far as there is room; how many they are. The mark at
  // the end of the list stays the bucket's: if it is kBucketFailed, earlier elements of the update wait for a larger
  // range, even if these elements find slots.
  WARPHASH_FN static u32 collect(const TwoLevelTable& t, const TwoLevelBatch& b, u32 bucket, Placing<D>& placing,
                                 u32 old) {
    u32 listed = 0, e = *Ranges<S>::counter(t, bucket);
    for (; e < kBucketFailed; e = pointer<const u32>(b.chain)[e], ++listed)
      if (old + listed < kMostRangeSlots) placing.m.pairs[old + listed].key = static_cast<typename S::Word>(e);
    placing.mark = e;
    return listed;
  }
  WARPHASH_FN static void refuse(const TwoLevelTable& t, const TwoLevelBatch& b, u32 bucket) {
    for (u32 e = *Ranges<S>::counter(t, bucket); e < kBucketFailed; e = pointer<const u32>(b.chain)[e])
      set_flag(b, e, kUnplaced);
  }
};

template <class D>
struct PlaceAll : OverRanges {
  static constexpr u64 kMemoryBytes = sizeof(typename Placing<D>::Memory);
  using S = typename D::S;

  WARPHASH_FN static void run_block(const TwoLevelTable& t, const TwoLevelBatch& b, u64 number, void* memory) {
    if (number >= t.buckets) return;
    const u32 bucket = static_cast<u32>(number);
    Range range = Ranges<S>::entry(t, bucket)->range();
    Placing<D> placing(t, b, memory);
    const u32 brought = *Ranges<S>::counter(t, bucket);
    const u32 n = brought < range.slots ? brought : range.slots;
    for (u32 i = placing.id; i < n; i += placing.threads)
      placing.m.pairs[i] = load_slot<false>(Ranges<S>::slots(range) + i);
    placing.vacate(range);
    block_barrier();
    const bool fits = placing.arrange(range, 0, n);
    if (fits) {
      placing.drop_copies(range);
      placing.write_all(range);
    } else {
      placing.write_nothing(range, n);
    }
    placing.close(bucket, range, n, fits ? 0 : n);
  }
};

template <class D>
struct MoveBuckets : OverRanges {
  static constexpr u64 kMemoryBytes = sizeof(typename Placing<D>::Memory);
  using S = typename D::S;

  WARPHASH_FN static void run_block(const TwoLevelTable& t, const TwoLevelBatch& b, u64 number, void* memory) {
    if (number >= b.n) return;
    const u32 bucket = pointer<const u32>(b.touched)[number];
    const Range from = Ranges<S>::entry(t, bucket)->range();
    Range to = pointer<const RangeEntry>(b.moves)[number].range();
    Placing<D> placing(t, b, memory);
    placing.gather(from);
    const u32 n = placing.m.count;
    placing.vacate(to);
    block_barrier();
    const bool fits = placing.arrange(to, 0, n);
    if (fits) {
      placing.drop_copies(to);
      placing.write_all(to);
      placing.write_nothing(from, 0);
    }
    placing.close(bucket, to, n, fits ? 0 : n);
  }
};

}  // namespace warphash
