// The schedule of a GPU: a lane owns an element, a tile of lanes reads a bucket together.
//
// Layout. A bucket of S::kBucketBytes is read by kLanes neighbouring lanes, kLaneBytes each, in vectors of 16 bytes;
// lane j of the tile holds slots [j * kPerLane, (j + 1) * kPerLane). Buckets of up to 16 bytes have one lane.
//
// Protocol, until no lane of the warp has work:
//   1. every lane with work names the bucket that it wants to see;
//   2. the tile reads the buckets of its kLanes owners, kInFlight of them at a time before the first use;
//   3. ballots tell each owner where its key is, which slot is vacant first, and whether the bucket is open;
//   4. each owner takes its design's next step, atomics included, on its own.
//
// Why. Random access on this hardware is priced by lines touched, if enough of them are in flight and each is fetched by
// few instructions: two lanes of 2 x 16 bytes for a line of 64 reached 34 G lookups/s where sixteen lanes of 8 bytes
// for one of 128 reached 17 (docs/performance-log.md). The seed reads a bucket of b slots with b lanes, one key of the tile at a time
// (Better GPU Hash Tables, Listing 1; S4-10); the work queue of its ballot is step 2 here.
#pragma once
#include "core/bucket.cuh"

namespace warphash {

template <class S>
struct Tile {
  using Word = typename S::Word;
  using Item = typename S::Item;
  static constexpr int kLaneBytes = S::kBucketBytes < kLaneBytesWanted ? S::kBucketBytes : kLaneBytesWanted;
  static constexpr int kLanes = S::kBucketBytes / kLaneBytes;
  static constexpr int kPerLane = kLaneBytes / static_cast<int>(sizeof(Item));
  static_assert(kLanes <= 32 && kLanes * kLaneBytes == S::kBucketBytes, "a bucket is a power of two of lanes");

  Item slots[kPerLane];

  template <bool kFrozen>
  WARPHASH_FN void load(const Item* at) {
    if constexpr (kLaneBytes < 16) {
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) slots[j] = load_slot<kFrozen>(at + j);
    } else {
      constexpr int kItems = 16 / static_cast<int>(sizeof(Item));
      struct Vector {
        Item items[kItems];
      };
#pragma unroll
      for (int v = 0; v < kPerLane / kItems; ++v) {
        const Vector x = __builtin_bit_cast(Vector, load_quad<kFrozen>(at + v * kItems));
#pragma unroll
        for (int j = 0; j < kItems; ++j) slots[v * kItems + j] = x.items[j];
      }
    }
  }

  // Every lane of the warp calls this for the same owner of each tile; what is seen is true in all lanes of the tile.
  template <bool kVacancy>
  WARPHASH_FN Seen<S> look(Word key, i32 region) const {
    const i32 rank = static_cast<i32>(lane() & (kLanes - 1));
    i32 hit = kPerLane, vacant = kPerLane;
    bool open = false;
    Item item = slots[0];
#pragma unroll
    for (int j = kPerLane - 1; j >= 0; --j) {
      if (slots[j].key == key) hit = j, item = slots[j];
      if (kVacancy && S::is_vacant(slots[j])) vacant = j;
      open |= rank * kPerLane + j == region - 1 && S::is_empty(slots[j]);
    }
    Seen<S> seen;
    if constexpr (kLanes == 1) {
      seen = {hit < kPerLane ? hit : -1, vacant, open, item};
    } else {
      const u32 first = lane() & ~static_cast<u32>(kLanes - 1);
      constexpr u32 kMask = kLanes == 32 ? ~0u : (1u << kLanes) - 1;
      const u32 hits = (ballot(hit < kPerLane) >> first) & kMask;
      const u32 from = hits ? first_bit(hits) : 0;
      seen.hit = -1;
      const i32 slot = static_cast<i32>(shuffle(static_cast<u32>(hit), from, kLanes));
      if (hits) seen.hit = static_cast<i32>(from) * kPerLane + slot;
      seen.item = Item::make(key, shuffle(item.payload(), from, kLanes));
      seen.open = ((ballot(open) >> first) & kMask) != 0;
      seen.vacant = S::kSlots;
      if constexpr (kVacancy) {
        const u32 room = (ballot(vacant < kPerLane) >> first) & kMask;
        const u32 in = room ? first_bit(room) : 0;
        const i32 at = static_cast<i32>(shuffle(static_cast<u32>(vacant), in, kLanes));
        if (room) seen.vacant = static_cast<i32>(in) * kPerLane + at;
      }
    }
    return seen;
  }
};

// The sum over a block; true in its first thread. All threads call it.
WARPHASH_FN u32 block_sum(u32 x) {
  WARPHASH_BLOCK_SHARED u32 sums[kBlockThreads / 32];
#pragma unroll
  for (u32 distance = 16; distance > 0; distance /= 2) x += shuffle(x, (lane() + distance) & 31u, 32);
  if (lane() == 0) sums[thread_in_block() / 32] = x;
  block_barrier();
  u32 total = 0;
  for (u32 w = 0; w < kBlockThreads / 32; ++w) total += sums[w];
  return total;
}

// What the elements of a thread did, summed into the Report once a block.
struct Tally {
  u32 changed = 0;
  u32 probes = 0;
  u32 mismatches = 0;
};

WARPHASH_FN void flush(const Batch& b, const Tally& tally) {
  Report* report = reinterpret_cast<Report*>(b.report);
  if (!report) return;
  const u32 changed = block_sum(tally.changed);
  if (changed && thread_in_block() == 0) atomic_add(&report->changed, static_cast<u64>(changed));
  if (b.count_probes && tally.probes) atomic_add(&report->probes, static_cast<u64>(tally.probes));
  if (tally.mismatches) atomic_add(&report->mismatches, static_cast<u64>(tally.mismatches));
}

// A place in a list for every thread that wants one, in the order of the threads; one atomic a block. All threads call it.
WARPHASH_FN u64 reserve(u64* length, bool wanted) {
  WARPHASH_BLOCK_SHARED u32 counts[kBlockThreads / 32];
  WARPHASH_BLOCK_SHARED u64 base;
  const u32 votes = ballot(wanted);
  const u32 warp = thread_in_block() / 32;
  if (lane() == 0) counts[warp] = bit_count(votes);
  block_barrier();
  u32 before = bit_count(votes & ((1u << lane()) - 1)), total = 0;
#pragma unroll
  for (u32 w = 0; w < kBlockThreads / 32; ++w) {
    if (w < warp) before += counts[w];
    total += counts[w];
  }
  if (thread_in_block() == 0 && total) base = fetch_add(length, static_cast<u64>(total));
  block_barrier();
  const u64 place = base + before;
  block_barrier();  // before the next call writes counts and base
  return place;
}

// One round: every lane of the warp calls this, and each with `pending` work learns of its bucket.
template <class Task>
WARPHASH_FN Seen<typename Task::S> observe(const Table& t, const typename Task::State& state, bool pending,
                                           i32 region) {
  using S = typename Task::S;
  using Word = typename S::Word;
  using Reader = Tile<S>;
  constexpr int kLanes = Reader::kLanes;
  constexpr int kInFlight = kLanes < Task::kMostInFlight ? kLanes : Task::kMostInFlight;
  Seen<S> mine = {-1, S::kSlots, false, S::empty()};
  if constexpr (kLanes == 1) {
    if (!pending) return mine;
    Reader reader;
    reader.template load<Task::kFrozen>(S::at(t, state.bucket()));
    return reader.template look<Task::kVacancy>(state.key(), region);
  } else {
    const u32 bucket = pending ? state.bucket() : kNowhere;
    const Word wanted = pending ? state.key() : Word(0);
    const u32 rank = lane() & (kLanes - 1);
#pragma unroll 1
    for (int o = 0; o < kLanes; o += kInFlight) {
      Reader reader[kInFlight];
#pragma unroll
      for (int f = 0; f < kInFlight; ++f) {
        const u32 from = shuffle(bucket, static_cast<u32>(o + f), kLanes);
        if (from != kNowhere) reader[f].template load<Task::kFrozen>(S::at(t, from) + rank * Reader::kPerLane);
      }
#pragma unroll
      for (int f = 0; f < kInFlight; ++f) {
        const Word key = shuffle(wanted, static_cast<u32>(o + f), kLanes);
        const Seen<S> seen = reader[f].template look<Task::kVacancy>(key, region);
        if (rank == static_cast<u32>(o + f)) mine = seen;
      }
    }
    return mine;
  }
}

// Asked once a block: one address that every warp of the chip reads is a queue (docs/performance-log.md).
WARPHASH_FN bool anything_homeless(const Batch& b) {
  WARPHASH_BLOCK_SHARED u64 homeless;
  if (thread_in_block() == 0) homeless = load_relaxed(&reinterpret_cast<const Report*>(b.report)->homeless);
  block_barrier();
  return homeless != 0;
}

template <class Task>
WARPHASH_FN void for_each(const Table& t, const Batch& batch) {
  const u64 n = batch.count ? *reinterpret_cast<const u64*>(batch.count) : batch.n;
  const u64 i = thread_in_grid();
  const bool live = i < n;
  typename Task::State state;
  Tally tally;
  Batch b = batch;
  if constexpr (Task::kSuspends) b.suspended = anything_homeless(b);
  bool pending = live && Task::start(t, b, i, state);
  if constexpr (Task::kProbes) {
    const i32 region = Task::region(t);
    while (any(pending)) {
      const Seen<typename Task::S> seen = observe<Task>(t, state, pending, region);
      if (pending) {
        ++tally.probes;
        pending = !Task::step(t, b, state, seen);
      }
    }
  }
  Task::finish(t, b, i, state, live, tally);
  flush(b, tally);
}

}  // namespace warphash
