// The schedule of a GPU: a lane owns an element, a tile of lanes reads a bucket together.
//
// Layout: core/gpu/tile.cuh says how a tile reads a part of a bucket.
//
// Protocol, until no lane of the warp has work:
//   1. every lane with work names the part of the bucket that it wants to see;
//   2. the tile reads the parts for its kLanes owners, kInFlight of them at a time before the first use;
//   3. ballots tell each owner where its key is, which slot is vacant first, and whether the bucket is open; without
//      the key, a part whose slots were all used leads to the next part: slots fill in order (core/slot.cuh);
//   4. each owner that has seen its bucket takes the next step of its task, atomics included, by itself.
//
// Why. The price of random access on this hardware is the number of lines touched, if enough lines are in flight and
// few instructions fetch each. Two lanes of 2 x 16 bytes for a line of 64 reached 34 G lookups/s, where sixteen lanes
// of 8 bytes for a line of 128 reached 17 (docs/performance/find.md). The paper reads a bucket of b slots with b lanes,
// one key of the tile at a time (Better GPU Hash Tables, Listing 1); the work queue of its ballot is step 2 here. Reads
// of buckets of 256 bytes are bound by the memory's bandwidth, and their second half is seldom needed.
#pragma once
#include "core/gpu/tile.cuh"
#include "core/report.cuh"

namespace warphash {

constexpr u32 kBlockThreads = 256;
constexpr u32 kLookupBlockThreads =
    128;  // of tasks that count nothing: the fewer threads wait for the slowest, the better

template <class Task>
WARPHASH_FN constexpr u32 most_threads() {
  if constexpr (requires { Task::kThreads; })
    return Task::kThreads;
  else
    return Task::kCounts && !kRefills<Task> ? kBlockThreads : kLookupBlockThreads;
}

// Blocks that must fit on a processor; 0 lets the compiler choose. Left alone, the compiler spills a few bytes to make
// room for one more block where buckets are large, or end in a pointer. And it takes 80 registers for a mixed batch,
// which then runs a tenth slower.
template <class Task>
WARPHASH_FN constexpr u32 fewest_blocks() {
  if constexpr (requires { Task::kBlocks; }) return Task::kBlocks;
  if constexpr (requires { typename Task::S::Item; }) {
    if (kRefills<Task>) return sizeof(typename Task::S::Item) < 16 ? 8 : 6;
    if (Task::S::kLinked || (!Task::kCounts && Task::S::kLookBytes > 128)) return 1;
  }
  return 0;
}

// The lanes of a bucket's slots, in order, call this for their own; all lanes of a warp call it.
template <class S>
WARPHASH_FN LineMasks masks_of(const typename S::Item* bucket, u32 slot) {
  const typename S::Item item = {load_relaxed(&bucket[slot].key)};
  const u32 first = lane() - slot;
  const auto vote = [&](bool yes) { return (ballot(yes) >> first) & S::kAllSlots; };
  const u32 empty = vote(S::is_empty(item));
  return {empty, vote(S::is_vacant(item))};
}

// The sum over a warp; all its lanes call it.
template <class Word>
WARPHASH_FN Word warp_sum(Word x) {
#pragma unroll
  for (u32 distance = 16; distance > 0; distance /= 2) x += shuffle(x, (lane() + distance) & 31u, 32);
  return x;
}

// Counts, for each subtable, the elements that the lanes have just placed there: lane j has the count of subtable j.
// All lanes of the warp call it.
template <class Task>
WARPHASH_FN void count_subtables(const typename Task::Table& t, Tally& tally) {
  if constexpr (kCountsSubtables<Task>) {
    for (u32 j = 0; j < t.subtables; ++j) {
      const u32 count = bit_count(ballot(tally.placed.last == j));
      if (lane() == j) tally.placed.mine += count;
    }
    tally.placed.last = kNowhere;
  }
}

// The sum over a block, for its first warp. All threads call it.
WARPHASH_FN u32 block_sum(u32 x) {
  WARPHASH_BLOCK_SHARED u32 sums[kMostBlockThreads / 32];
  x = warp_sum(x);
  if (lane() == 0) sums[thread_in_block() / 32] = x;
  block_barrier();
  if (thread_in_block() >= 32) return 0;
  return warp_sum(lane() < threads_in_block() / 32 ? sums[lane()] : 0u);
}

template <class Task>
WARPHASH_FN void flush(const Launch& b, const Tally& tally) {
  CountLine& line = count_line(b, thread_in_grid() / 32);
  if constexpr (kCountsSubtables<Task>) {  // by warps: no block waits for its slowest
    if (tally.placed.mine) count_placed(line, lane(), tally.placed.mine);
    if (tally.changed) atomic_add(&line.changed, static_cast<u64>(tally.changed));
  } else {
    const u32 changed = block_sum(tally.changed);
    if (changed && thread_in_block() == 0) atomic_add(&line.changed, static_cast<u64>(changed));
  }
  if constexpr (kErases<Task>) {
    block_barrier();  // before the next sum is gathered
    const u32 erased = block_sum(tally.erased);
    if (erased && thread_in_block() == 0) atomic_add(&line.erased, static_cast<u64>(erased));
  } else if (tally.erased) {
    atomic_add(&line.erased, static_cast<u64>(tally.erased));
  }
  if (b.count_probes && tally.probes) atomic_add(&line.probes, static_cast<u64>(tally.probes));
  if (tally.mismatches) atomic_add(&line.mismatches, static_cast<u64>(tally.mismatches));
}

// A place in a list for every thread that wants one, in the order of the threads; one atomic a block. All threads call
// it.
WARPHASH_FN u64 reserve(u64* length, bool wanted) {
  WARPHASH_BLOCK_SHARED u32 counts[kMostBlockThreads / 32];
  WARPHASH_BLOCK_SHARED u64 base;
  const u32 votes = ballot(wanted);
  const u32 warp = thread_in_block() / 32;
  if (lane() == 0) counts[warp] = bit_count(votes);
  block_barrier();
  const u32 of_warp = lane() < threads_in_block() / 32 ? counts[lane()] : 0;
  const u32 total = warp_sum(of_warp);
  const u32 before = warp_sum(lane() < warp ? of_warp : 0u) + bit_count(votes & ((1u << lane()) - 1));
  if (thread_in_block() == 0 && total) base = fetch_add(length, static_cast<u64>(total));
  block_barrier();
  const u64 place = base + before;
  block_barrier();  // before the next call writes counts and base
  return place;
}

// Enters the elements of a block into their task's lists. All threads call it.
template <class Task>
WARPHASH_FN void enter_lists(const typename Task::Batch& b, const typename Task::State& state, bool live) {
#pragma unroll
  for (int list = 0; list < Task::kLists; ++list) {
    u64* length = Task::length(b, list);
    if (!length) continue;
    const bool listed = live && Task::lists(list, state);
    const u64 place = reserve(length, listed);
    if (listed) Task::enter(b, list, place, Task::entry(state));
  }
}

// How an owner tells its tile where a bucket lies: by the number, or by the address if that takes more than a
// multiplication.
template <class S>
struct Whereabouts {
  using Table = typename S::Table;
  using Code = u32;
  static constexpr Code kNone = kNowhere;
  WARPHASH_FN static Code of(const Table&, u32 bucket) { return bucket; }
  WARPHASH_FN static const typename S::Item* at(const Table& t, Code place) { return S::at(t, place); }
};
template <class S>
  requires(S::kFar)
struct Whereabouts<S> {
  using Table = typename S::Table;
  using Code = u64;
  static constexpr Code kNone = 0;
  WARPHASH_FN static Code of(const Table& t, u32 bucket) { return reinterpret_cast<u64>(S::at(t, bucket)); }
  WARPHASH_FN static const typename S::Item* at(const Table&, Code place) {
    return in_global(reinterpret_cast<const typename S::Item*>(place));
  }
};

// One round. Every lane of the warp calls this. A lane with `pending` work learns of `part` of its bucket, in addition
// to what `mine` says of the parts before. True if the lane needs to know no more.
template <class Task>
WARPHASH_FN bool observe(const typename Task::Table& t, const typename Task::State& state, bool pending, i32 region,
                         u32 part, BucketView<typename Task::S>& mine) {
  using S = typename Task::S;
  using Word = typename S::Word;
  using Reader = Tile<S, Task::kPartBytes>;
  constexpr int kLanes = Reader::kLanes;
  constexpr int kInFlight =
      kLanes <= 4 && !S::kLinked ? kLanes : 2;  // with more large parts in flight, registers spill, and it is no faster
  const typename Whereabouts<S>::Code place = pending ? Whereabouts<S>::of(t, state.bucket()) : Whereabouts<S>::kNone;
  const Word wanted = pending ? state.key() : Word{};
  const i32 rank = static_cast<i32>(lane() & (kLanes - 1));
  const auto passed = [](u32 parts) { return static_cast<i32>(parts) * Reader::kPartSlots; };  // slots
  if (part == 0) mine = BucketView<S>::full();
  bool whole = true;
#pragma unroll 1
  for (int o = 0; o < kLanes; o += kInFlight) {
    Reader reader[kInFlight];
    u32 part_of[kInFlight];
#pragma unroll
    for (int f = 0; f < kInFlight; ++f) {
      const typename Whereabouts<S>::Code from = kLanes == 1 ? place : shuffle(place, static_cast<u32>(o + f), kLanes);
      part_of[f] = Reader::kParts == 1 ? 0 : shuffle(part, static_cast<u32>(o + f), kLanes);
      if (from != Whereabouts<S>::kNone)
        reader[f].template load<Task::kFrozen>(Whereabouts<S>::at(t, from) + passed(part_of[f]), rank);
    }
#pragma unroll
    for (int f = 0; f < kInFlight; ++f) {
      const Word key = kLanes == 1 ? wanted : shuffle(wanted, static_cast<u32>(o + f), kLanes);
      const i32 opening = region - 1 - passed(part_of[f]);
      const typename Reader::Glance seen =
          reader[f].template look<Task::kVacancy, kSeesAll<Task>, kSeesWhere<Task>>(key, opening, rank);
      if (rank == o + f) {
        if constexpr (Reader::kParts == 1) {
          mine = {seen.hit, seen.vacant, seen.open, seen.item, kNowhere, 0};
          if constexpr (S::kLinked) mine.next = seen.next;
          if constexpr (kSeesAll<Task>) mine.hits = seen.hits;
        } else {
          const i32 before = passed(part_of[f]);
          if (seen.hit >= 0) mine.hit = before + seen.hit, mine.item = seen.item;
          if (seen.vacant < Reader::kPartSlots && mine.vacant == S::kSlots) mine.vacant = before + seen.vacant;
          mine.open |= seen.open || (seen.ends && opening >= Reader::kPartSlots);
          whole = (seen.hit >= 0 && !Task::kVacancy) || seen.ends || part + 1 == Reader::kParts;
        }
      }
    }
  }
  return whole;
}

// Gives a slab to each pending element that wants one; true if the element of this lane goes on. All lanes of the warp
// call it.
template <class Task>
WARPHASH_FN bool supply_slabs(const typename Task::Table& t, AllocatorOf<Task>& allocator, typename Task::State& state,
                              bool pending) {
  const bool wanted = pending && Task::wants_slab(state);
  const u32 slab = allocator.allocate(t, wanted);
  return wanted ? !Task::supply(t, state, slab) : pending;
}

// As enter_lists, but for one warp: one atomic for its listed elements, if there are any. All lanes of the warp call
// it.
template <class Task>
WARPHASH_FN void enter_lists_of_warp(const typename Task::Batch& b, const typename Task::State& state, bool finished) {
#pragma unroll
  for (int list = 0; list < Task::kLists; ++list) {
    u64* length = Task::length(b, list);
    if (!length) continue;
    const bool listed = finished && Task::lists(list, state);
    const u32 votes = ballot(listed);
    if (!votes) continue;
    u64 base = 0;
    if (lane() == first_bit(votes)) base = fetch_add(length, static_cast<u64>(bit_count(votes)));
    base = shuffle(base, first_bit(votes), 32);
    if (listed) Task::enter(b, list, base + bit_count(votes & ((1u << lane()) - 1)), Task::entry(state));
  }
}

// For operations of unlike length. A warp has a stretch of the elements. A lane that is done takes up the next element
// while its neighbours go on, so a warp does not wait for the lane with the longest operation. The grid is as large as
// the device holds at once (runtime/cuda/program.py). Inserts into lists of 1.3 slabs took a fifth less time in this
// way. Finds took more time, since neighbours end together and write their answers together; so did the exchanges of
// cuckoo hashing (docs/performance/lists.md).
template <class Task>
WARPHASH_FN void for_each_refilling(const typename Task::Table& t, const typename Task::Batch& b) {
  static_assert(Task::kReads, "a round is a look at a bucket");
  const u64 n = b.count ? *reinterpret_cast<const u64*>(b.count) : b.n;
  const u64 warp = thread_in_grid() / kWarpLanes, warps = threads_in_grid() / kWarpLanes;
  const u32 end = static_cast<u32>(n * (warp + 1) / warps);
  u32 next = static_cast<u32>(n * warp / warps), i = 0;
  typename Task::State state;
  Tally tally;
  [[maybe_unused]] AllocatorOf<Task> allocator(static_cast<u32>(warp));
  BucketView<typename Task::S> seen = BucketView<typename Task::S>::full();
  const i32 region = Task::region(t);
  bool pending = false;
  for (;;) {
    for (u32 idle = ballot(!pending); idle && next < end; idle = ballot(!pending)) {
      const u32 mine = next + bit_count(idle & ((1u << lane()) - 1));
      next += bit_count(idle);
      if (pending || mine >= end) continue;
      i = mine;
      bool suspend = false;
      if constexpr (Task::kSuspends) suspend = suspended(b, warp);
      pending = Task::start(t, b, i, state);
      if constexpr (Task::kSuspends)
        if (suspend) pending = pending && Task::suspend(state);
      if (!pending) Task::finish(t, b, i, state, true, tally);
    }
    if (!any(pending)) break;
    observe<Task>(t, state, pending, region, 0, seen);  // a node is one part, and so is a line
    bool goes_on = pending;
    if (pending) {
      ++tally.probes;
      goes_on = !Task::step(t, b, state, seen);
    }
    if constexpr (kAllocates<Task>) goes_on = supply_slabs<Task>(t, allocator, state, goes_on);
    const bool finished = pending && !goes_on;
    if (finished) Task::finish(t, b, i, state, true, tally);
    count_subtables<Task>(t, tally);
    if constexpr (Task::kLists > 0) enter_lists_of_warp<Task>(b, state, finished);
    pending = goes_on;
  }
  if constexpr (Task::kCounts) flush<Task>(b, tally);
}

// For operations that look at no bucket, over a short list whose length the host does not know. A grid with one lane
// per element would start mostly idle blocks. So the grid is as large as the device holds at once, and a lane takes up
// one element a round.
template <class Task>
WARPHASH_FN void for_each_in_rounds(const typename Task::Table& t, const typename Task::Batch& b) {
  static_assert(!Task::kProbes && !Task::kSuspends && !Task::kCounts, "a round has no probes, signals or counts");
  const u64 n = b.count ? *reinterpret_cast<const u64*>(b.count) : b.n;
  for (u64 i = thread_in_grid(); i - lane() < n; i += threads_in_grid()) {
    typename Task::State state;
    Tally tally;
    const bool live = i < n;
    if (live) Task::start(t, b, i, state);
    Task::finish(t, b, i, state, live, tally);
    enter_lists_of_warp<Task>(b, state, live);
  }
}

// One lane per element.
template <class Task>
WARPHASH_FN void for_each_once(const typename Task::Table& t, const typename Task::Batch& b) {
  const u64 n = b.count ? *reinterpret_cast<const u64*>(b.count) : b.n;
  const u64 i = thread_in_grid();
  const bool live = i < n;
  typename Task::State state;
  Tally tally;
  [[maybe_unused]] AllocatorOf<Task> allocator(static_cast<u32>(i / kWarpLanes));
  bool suspend = false;
  if constexpr (Task::kSuspends) suspend = suspended(b, i / 32);  // asked for before the key is waited for
  bool pending = live && Task::start(t, b, i, state);
  if constexpr (Task::kSuspends)
    if (suspend) pending = pending && Task::suspend(state);
  if constexpr (Task::kProbes) {
    using S = typename Task::S;
    const i32 region = Task::region(t);
    BucketView<S> seen = BucketView<S>::full();
    u32 part = 0;
    while (any(pending)) {
      count_round(pending);
      bool whole = true;
      if constexpr (Task::kReads) whole = observe<Task>(t, state, pending, region, part, seen);
      if (pending && !whole) {
        ++part;
      } else if (pending) {
        part = 0;
        ++tally.probes;
        pending = !Task::step(t, b, state, seen);
      }
      if constexpr (kAllocates<Task>) pending = supply_slabs<Task>(t, allocator, state, pending);
    }
  } else if constexpr (kSteps<Task>) {
    while (any(pending)) {
      count_round(pending);
      if (pending) pending = !Task::step(t, b, state);
    }
  }
  if constexpr (kAllocates<Task> && !Task::kProbes) supply_slabs<Task>(t, allocator, state, live);
  Task::finish(t, b, i, state, live, tally);
  count_subtables<Task>(t, tally);
  if constexpr (kCountsSubtables<Task> && Task::kLists > 0)
    enter_lists_of_warp<Task>(b, state, live);
  else if constexpr (Task::kLists > 0)
    enter_lists<Task>(b, state, live);
  if constexpr (Task::kCounts) flush<Task>(b, tally);
}

template <class Task>
WARPHASH_FN void for_each(const typename Task::Table& t, const typename Task::Batch& b) {
  if constexpr (!kWalks<Task>) check_task<Task>();
  if constexpr (kWalks<Task>)
    Task::run(t, b);
  else if constexpr (kRefills<Task> && Task::kProbes)
    for_each_refilling<Task>(t, b);
  else if constexpr (kRefills<Task>)
    for_each_in_rounds<Task>(t, b);
  else
    for_each_once<Task>(t, b);
}

}  // namespace warphash
