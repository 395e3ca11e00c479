// The build of a table from a batch, part by part, each in a thread's own cache; for BucketSlots.build, on a CPU.
//
//   scatter_parts  brings each pair of a batch into the memory of the part of the table that has its first bucket
//   scatter_slots  the same for the pairs in the slots of another table
//   build_parts    makes buckets of the pairs of each part; an element is a bucket, and a part goes to the thread with
//                  its first
//   flag_added     flags one element of each key; `claims` has a bit for each slot, 0 at first
//
// Layout. A part is a range of buckets whose number is a power of two: bucket k lies in part k >> part_shift. There is
// no table yet, so the pairs of a part wait, in no order, in the memory where the buckets of the part will be. A part
// has more slots than there are pairs, so no pass has to count them first. A part is given out in chunks, and a thread
// fills a chunk run by run:
//   part   [ chunk | chunk | … ]       `chunks` has the number given out, a word for each part, zero at first
//   chunk  [ run | run | … ]           ends with its last run, or before the first slot with kEmpty
// left_keys and left_values take the pairs that go into no first bucket. Report::leftover of them, from the front, are
// pairs whose bucket is full: their keys are nowhere in the table, but a key may be there several times.
// Report::winners of them, from the back, are pairs with reserved keys, or pairs of a part without room (a batch of few
// keys, many times each, may fill one): these keys may be in the table or not.
//
// Why. An insert of a pair fetches a line from memory and writes it back, into a table that was written once to be
// cleared. A build streams pairs and finished buckets. The pairs bypass the caches: it would be of no use to read the
// memory that they overwrite. A run has four lines, because the branch "the run is full" is one that the processor
// cannot predict. (The numbers, and what else was tried: docs/performance/cpu.md.)
//
// Memory order: relaxed. A counter hands out chunks and publishes nothing. One thread builds a part, after the join of
// the threads that scattered, which wait for their streams first.
#pragma once
#include "buckets/cpu/find.cuh"
#include "buckets/insert.cuh"
#include "core/cpu/schedule.cuh"

namespace warphash {

constexpr u32 kMostBuildParts = 1024;  // as in policies.py
constexpr u32 kRunBytes = 4 * kLineBytes;
constexpr u32 kChunksOfPart = 64;

// The parts of a table.
template <class S>
struct BuildParts {
  using Pair = typename S::Pair;
  static constexpr u32 kRun = kRunBytes / sizeof(Pair);
  u32 shift, buckets;
  u32 chunk;    // slots
  Pair* slots;  // also where pairs wait for their bucket: whole and in any order
  u64* chunks;

  BuildParts(const BucketTable& t, const BuildBatch& b)
      : shift(static_cast<u32>(b.part_shift)),
        buckets(static_cast<u32>(t.buckets)),
        chunk((static_cast<u32>(S::kSlots) << shift) / kChunksOfPart),
        slots(pointer<Pair>(t.slots)),
        chunks(pointer<u64>(b.chunks)) {
    if (chunk < kRun) chunk = kRun;
  }
  WARPHASH_FN Pair* begin(u32 part) const { return slots + (static_cast<u64>(part) << shift) * S::kSlots; }
  WARPHASH_FN u32 size(u32 part) const {  // buckets
    const u32 left = buckets - (part << shift);
    return left >> shift ? 1u << shift : left;
  }
  WARPHASH_FN u32 room(u32 part) const { return size(part) * S::kSlots / chunk; }  // chunks
};

// One end of the list of pairs that go into no first bucket. A thread adds many pairs at a time, since all threads
// write the length. (Code that runs seldom is out of line, here and below: the loops around it need the registers.)
template <class S>
class PairsLeft {
  static constexpr u32 kHeld = 64;
  typename S::Pair held_[kHeld];
  u32 count_ = 0;
  const bool front_;

 public:
  explicit PairsLeft(bool front) : front_(front) {}
  WARPHASH_FN void add(const BuildBatch& b, const typename S::Pair& pair) {
    held_[count_++] = pair;
    if (count_ == kHeld) flush(b);
  }
  [[gnu::noinline]] void flush(const BuildBatch& b) {
    Report* const report = report_of(b);
    const u64 given = fetch_add(front_ ? &report->leftover : &report->winners, static_cast<u64>(count_));
    const u64 at = front_ ? given : b.n - given - count_;
    for (u32 k = 0; k < count_; ++k) {
      pointer<typename S::Word>(b.left_keys)[at + k] = held_[k].key;
      if constexpr (S::kHasValue) pointer<typename S::Word>(b.left_values)[at + k] = held_[k].payload();
    }
    count_ = 0;
  }
};

// Tells the host that there was no memory to work in: it clears the table and inserts the batch.
WARPHASH_FN void give_up(const BuildBatch& b) { atomic_add(&report_of(b)->unplaced, 1ull); }

// Brings the pairs of a thread into the memory of their parts.
template <class S>
struct PartWriter {
  using Pair = typename S::Pair;
  static constexpr u32 kRun = BuildParts<S>::kRun;
  const BuildParts<S> parts;
  PairsLeft<S> left;
  Pair* const runs;  // one of each part, which its next pairs wait in
  // The slot of each part that its next pair is for. If the slot is the first of a chunk, the chunk is not given out
  // yet.
  u32 next[kMostBuildParts] = {};

  PartWriter(const BucketTable& t, const BuildBatch& b)
      : parts(t, b), left(false), runs(static_cast<Pair*>(aligned_alloc(kLineBytes, b.parts * kRunBytes))) {}
  ~PartWriter() { free(runs); }
  PartWriter(const PartWriter&) = delete;
  WARPHASH_FN Pair* run_of(u32 part) const { return runs + static_cast<u64>(part) * kRun; }
  WARPHASH_FN void add(const BuildBatch& b, u32 part, const Pair& pair) {
    const u32 at = next[part]++;
    run_of(part)[at % kRun] = pair;
    if (at % kRun == kRun - 1) send(b, part, kRun);
  }
  // Writes the run of a part, which has so many pairs; if the part has no room, they are left.
  [[gnu::noinline]] void send(const BuildBatch& b, u32 part, u32 pairs) {
    const Pair* const run = run_of(part);
    u32 at = next[part] - pairs;
    if (at % parts.chunk == 0) {
      const u64 number = fetch_add(parts.chunks + part, 1ull);
      if (number >= parts.room(part)) {
        for (u32 k = 0; k < pairs; ++k) left.add(b, run[k]);
        next[part] = 0;
        return;
      }
      at = static_cast<u32>(number) * parts.chunk;
    }
    for (u32 k = 0; k < kRun; k += kLineBytes / sizeof(Pair)) stream_line(parts.begin(part) + at + k, run + k);
    next[part] = at + kRun;
  }
  void flush(const BuildBatch& b) {
    for (u32 p = 0; p < b.parts; ++p) {
      const u32 pairs = next[p] % kRun;
      if (pairs == 0 && next[p] % parts.chunk == 0) continue;
      for (u32 k = pairs; k < kRun; ++k) run_of(p)[k] = Pair::make(S::kEmpty, S::kEmpty);
      send(b, p, pairs);
    }
    left.flush(b);
    end_streams();
  }
};

template <class D>
struct ScatterParts {
  using Table = BucketTable;
  using Batch = BuildBatch;
  using S = typename D::S;
  using Pair = typename S::Pair;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64;

  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    const Table t = table;  // a local copy, as in core/cpu/schedule.cuh
    const Batch b = batch;
    PartWriter<S> to(t, b);
    if (!to.runs) return give_up(b);
    for (u64 i = begin; i < end; i += kBlock) {
      const u32 n = end - i < kBlock ? static_cast<u32>(end - i) : kBlock;
      typename S::Word keys[kBlock];  // a copy: the key that gives the bucket is the one that goes there
      load_keys<S>(b, i, n, keys);
      const typename S::Word* const values = pointer<const typename S::Word>(b.values) + i;
      u32 buckets[kBlock];
      find_buckets(t, n, buckets, [&keys](u32 k) { return keys[k]; });
      for (u32 k = 0; k < n; ++k) {
        const Pair pair = Pair::make(keys[k], S::kHasValue ? values[k] : 0);
        if (S::is_reserved(pair.key)) [[unlikely]]
          to.left.add(b, pair);
        else
          to.add(b, buckets[k] >> to.parts.shift, pair);
      }
    }
    to.flush(b);
  }
};

template <class D>
struct ScatterSlots {
  using Table = BucketTable;
  using Batch = BuildBatch;
  using S = typename D::S;
  using Pair = typename S::Pair;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64;

  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    const Table t = table;
    const Batch b = batch;
    PartWriter<S> to(t, b);
    if (!to.runs) return give_up(b);
    const u64 hashed = b.source_buckets * S::kSlots, stop = end < hashed ? end : hashed;
    for (u64 i = begin; i < stop; i += kBlock) {
      const u64 n = stop - i < kBlock ? stop - i : kBlock;
      Pair pairs[kBlock];
      u32 buckets[kBlock], count = 0;
      for (u64 k = i; k < i + n; ++k) {  // whether a slot has a pair is a branch that the processor cannot predict
        pairs[count] = pair_at<S>(b.source_slots, k);
        count += S::holds_key(pairs[count]);
      }
      find_buckets(t, count, buckets, [&pairs](u32 k) { return pairs[k].key; });
      for (u32 k = 0; k < count; ++k) to.add(b, buckets[k] >> to.parts.shift, pairs[k]);
    }
    for (u64 i = begin > hashed ? begin : hashed; i < end; ++i) {
      const Pair pair = pair_at<S>(b.source_slots, i);
      if (S::holds_key(pair)) to.left.add(b, Pair::make(pair.key + S::kBusy, pair.payload()));
    }
    to.flush(b);
  }
};

template <class D>
struct BuildOfParts {
  using Table = BucketTable;
  using Batch = BuildBatch;
  using S = typename D::S;
  using Pair = typename S::Pair;
  static constexpr bool kWalks = true;
  static constexpr u32 kRun = BuildParts<S>::kRun, kBlock = 64;

  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    const Table t = table;
    const Batch b = batch;
    const u64 slots_bytes = static_cast<u64>(S::kBucketBytes) << b.part_shift;
    const u64 bytes = slots_bytes + (1ull << b.part_shift);
    void* const stage = aligned_alloc(kLineBytes, (bytes + kLineBytes - 1) / kLineBytes * kLineBytes);
    if (!stage) return give_up(b);
    Builder builder(t, b, stage, static_cast<u8*>(stage) + slots_bytes);
    for (u64 p = (begin + (1ull << b.part_shift) - 1) >> b.part_shift; p << b.part_shift < end; ++p)
      builder.build(t, b, static_cast<u32>(p));
    builder.left.flush(b);
    flush<BuildOfParts>(b, builder.tally);
    free(stage);
  }

 private:
  struct Builder {
    const BuildParts<S> parts;
    void* const stage;  // the buckets of a part
    u8* const loads;    // and how many pairs each bucket has
    PairsLeft<S> left;
    Tally tally;

    Builder(const BucketTable& t, const BuildBatch& b, void* slots, u8* bytes)
        : parts(t, b), stage(slots), loads(bytes), left(true) {}

    void build(const BucketTable& t, const BuildBatch& b, u32 part) {
      const u64 size = parts.size(part), bytes = size * S::kBucketBytes;
      const u64 chunks = parts.chunks[part] < parts.room(part) ? parts.chunks[part] : parts.room(part);
      std::memset(stage, 0xFF, bytes);
      std::memset(loads, 0, size);
      for (u64 c = 0; c < chunks; ++c) {
        const Pair* const chunk = parts.begin(part) + c * parts.chunk;
        for (u32 i = 0, n = kBlock; i < parts.chunk && n == kBlock; i += n) {
          n = pairs_of(chunk + i, parts.chunk - i < kBlock ? parts.chunk - i : kBlock);
          add(t, b, part, chunk + i, n);
        }
      }
      std::memcpy(static_cast<void*>(parts.begin(part)), stage, bytes);
    }

    // How many pairs some runs of a chunk have, up to where it ends.
    WARPHASH_FN static u32 pairs_of(const Pair* runs, u32 n) {
      u32 pairs = 0;
      while (pairs < n && (pairs == 0 || runs[pairs - 1].key != S::kEmpty)) pairs += kRun;
      while (pairs > 0 && runs[pairs - 1].key == S::kEmpty) --pairs;
      return pairs;
    }

    WARPHASH_FN void add(const BucketTable& t, const BuildBatch& b, u32 part, const Pair* pairs, u32 n) {
      const u32 first = part << parts.shift, room = static_cast<u32>(D::settle_slots(t));
      void* const slots = stage;  // local copies: a store to a byte could change any member
      u8* const all_loads = loads;
      u32 buckets[kBlock], changed = 0;
      find_buckets(t, n, buckets, [pairs](u32 k) { return pairs[k].key; });
      for (u32 k = 0; k < n; ++k) {
        const Pair pair = pairs[k];
        const u64 at = buckets[k] - first;
        typename S::Item* const bucket = S::bucket_of(slots, at);
        if (holds<S>(bucket, pair.key)) continue;
        const u32 load = all_loads[at];
        if (load < room) {
          S::put(bucket + load, pair);
          all_loads[at] = static_cast<u8>(load + 1);
          ++changed;
        } else {
          left.add(b, pair);
        }
      }
      tally.changed += changed;
    }
  };
};

// Flags the elements of a batch that has been built: of the elements with one key, one whose value the table has. Counts
// the flags: they are fewer than the keys if the batch has changed since the build.
template <class D>
struct FlagAdded : Find<D> {
  static constexpr bool kCounts = true;
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  struct State : Find<D>::State {
    u64 slot;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) { return Find<D>::start(t, b, i, s); }
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    if (seen.hit < 0) return !D::advance(t, s.probe, seen);
    if constexpr (S::kHasValue) s.value_ = S::value_seen(S::at(t, s.probe.bucket) + seen.hit, seen.item);
    s.slot = static_cast<u64>(s.probe.bucket) * S::kSlots + static_cast<u64>(seen.hit);
    return s.found = true;
  }
  WARPHASH_FN static void finish(const Table&, const Batch& b, u64 i, State& s, bool, Tally& tally) {
    const u32 element = static_cast<u32>(i), bit = 1u << (s.slot & 31);
    bool added = s.found && (!S::kHasValue || s.value_ == value_at<S>(b, element));
    if (added) added = !(fetch_or(pointer<u32>(b.claims) + (s.slot >> 5), bit) & bit);
    tally.changed += added;
    set_flag(b, element, added ? kChanged : kPresent);
  }
};

}  // namespace warphash
