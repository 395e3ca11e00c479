// The schedule of a CPU: a thread walks a range of elements with kInFlight of them under way.
//
// Protocol. An element that starts or takes a step names the bucket that it wants to see, which is prefetched. When the
// round comes back to the element, kInFlight - 1 others have taken a step and the line of the bucket is in the cache.
// An element that is done makes room for the next. With one element in flight a table is built at 6.7 M keys/s, with 32
// at 50 M.
#pragma once
#include "core/bucket.cuh"
#include "core/report.cuh"

namespace warphash {

constexpr int kInFlight = 32;

template <class S, bool kVacancy>
WARPHASH_FN BucketView<S> look(const typename S::Item* at, const typename S::Word& key, i32 region) {
  BucketView<S> seen;
  if constexpr (sizeof(typename S::Word) > 8) {
    seen = BucketView<S>::full();
    for (int j = S::kSlots; j-- > 0;) {
      const typename S::Word there = load_relaxed(&at[j].key);
      if (there == key) seen.hit = j;
      if (is_mark(there, 1)) seen.vacant = j;
      if (j == region - 1) seen.open = is_mark(there, 0);
    }
  } else if constexpr (S::kSlots == 1) {
    seen.item = load_slot<false>(at);
    seen.hit = seen.item.key == key ? 0 : -1;
    seen.vacant = seen.item.key >= S::kTombstone ? 0 : 1;
    seen.open = region == 1 && seen.item.key == S::kEmpty;
  } else {
    auto [hits, vacant] = survey<S, kVacancy>(at, key);
    if constexpr (S::kLinked) {
      constexpr u32 kData = (1u << S::kDataSlots) - 1;
      hits &= kData, vacant &= kData;
    }
    seen.item = load_slot<false>(at + (hits ? first_bit(hits) : 0));
    // The slot is read again, so its key is compared again: another thread may have erased the key since. A list may
    // hold the key in a later slot, too.
    if constexpr (S::kLinked)
      while (hits && seen.item.key != key) {
        hits &= hits - 1;
        seen.item = load_slot<false>(at + (hits ? first_bit(hits) : 0));
      }
    seen.hit = hits && seen.item.key == key ? static_cast<i32>(first_bit(hits)) : -1;
    seen.vacant = vacant ? static_cast<i32>(first_bit(vacant)) : S::kSlots;
    seen.open = region > 0 && load_relaxed(&at[region - 1].key) == S::kEmpty;
    if constexpr (S::kLinked) seen.next = load_relaxed(S::next_of(const_cast<typename S::Item*>(at)));
    seen.hits = hits;
  }
  return seen;
}

template <class S>
WARPHASH_FN LineMasks masks_of(const typename S::Item* bucket, u32) {
  if constexpr (S::kWide) {
    LineMasks masks = {0, 0};
    for (int j = 0; j < S::kSlots; ++j) {
      const typename S::Item item = {load_relaxed(&bucket[j].key)};
      masks.empty |= static_cast<u32>(S::is_empty(item)) << j;
      masks.vacant |= static_cast<u32>(S::is_vacant(item)) << j;
    }
    return masks;
  } else {
    const SlotMasks seen = survey<S, true>(bucket, S::kEmpty);
    return {seen.hits, seen.vacant};
  }
}

template <class Word>
WARPHASH_FN Word warp_sum(Word x) {
  return x;
}

template <class Task>
inline void flush(const Launch& b, const Tally& tally) {
  CountLine& line = count_line(b, 0);
  if constexpr (kCountsSubtables<Task>)
    for (u32 j = 0; j < kMostSubtables; ++j)
      if (tally.placed.count[j]) count_placed(line, j, tally.placed.count[j]);
  if (tally.changed) atomic_add(&line.changed, tally.changed);
  if (b.count_probes && tally.probes) atomic_add(&line.probes, tally.probes);
  if (tally.mismatches) atomic_add(&line.mismatches, tally.mismatches);
  if (tally.erased) atomic_add(&line.erased, tally.erased);
}

// The entries of a thread for the lists of a task. It enters kHeld at a time, since all threads write the lengths.
template <class Task>
class Lists {
  using Batch = typename Task::Batch;
  static constexpr int kHeld = 64;
  typename Task::Entry held_[Task::kLists][kHeld];
  int count_[Task::kLists] = {};

  void flush(const Batch& b, int list) {
    const u64 place = fetch_add(Task::length(b, list), static_cast<u64>(count_[list]));
    for (int k = 0; k < count_[list]; ++k) Task::enter(b, list, place + static_cast<u64>(k), held_[list][k]);
    count_[list] = 0;
  }

 public:
  WARPHASH_FN void add(const Batch& b, const typename Task::State& state) {
    for (int list = 0; list < Task::kLists; ++list) {
      if (!Task::lists(list, state) || !Task::length(b, list)) continue;
      held_[list][count_[list]++] = Task::entry(state);
      if (count_[list] == kHeld) flush(b, list);
    }
  }
  void flush(const Batch& b) {
    for (int list = 0; list < Task::kLists; ++list)
      if (count_[list]) flush(b, list);
  }
};

template <class Task>
  requires(Task::kLists == 0)
class Lists<Task> {
 public:
  WARPHASH_FN void add(const Launch&, const typename Task::State&) {}
  void flush(const Launch&) {}
};

template <class S>
WARPHASH_FN void prefetch_bucket(const typename S::Table& t, u32 bucket, bool far = false) {
  prefetch_bytes<S::kBucketBytes>(S::at(t, bucket), far);
}

// Asks for the memory that the next step of an element needs.
template <class Task>
WARPHASH_FN void prefetch_for(const typename Task::Table& t, const typename Task::State& state) {
  if constexpr (kSteps<Task>)
    prefetch(Task::next(t, state));
  else
    prefetch_bucket<typename Task::S>(t, state.bucket());
}

// True if the element is done.
template <class Task>
WARPHASH_FN bool take_step(const typename Task::Table& t, const typename Task::Batch& b, typename Task::State& state,
                           i32 region, Tally& tally) {
  if constexpr (kSteps<Task>) {
    return Task::step(t, b, state);
  } else {
    using S = typename Task::S;
    ++tally.probes;
    BucketView<S> seen = BucketView<S>::full();
    if constexpr (Task::kReads) seen = look<S, Task::kVacancy>(S::at(t, state.bucket()), state.key(), region);
    return Task::step(t, b, state, seen);
  }
}

template <class Task>
inline void for_each_stepping(const typename Task::Table& table, const typename Task::Batch& batch, u64 begin,
                              u64 end) {
  struct Flight {
    typename Task::State state;
    u64 i;
  };
  const auto t = table;  // a local copy: the compiler then knows that no store to a slot or a flag changes it
  const auto b = batch;
  Flight flights[kInFlight];
  [[maybe_unused]] AllocatorOf<Task> allocator(static_cast<u32>(begin));
  Tally tally;
  Lists<Task> lists;
  u64 next = begin;
  i32 region = 0;
  if constexpr (Task::kProbes) region = Task::region(t);
  // Puts the next element that needs a probe into `f`; false when there is none.
  const auto board = [&](Flight& f) {
    while (next < end) {
      f.i = next++;
      bool pending = Task::start(t, b, f.i, f.state);
      if constexpr (Task::kSuspends)
        if (suspended(b, 0)) pending = pending && Task::suspend(f.state);
      if (pending) {
        prefetch_for<Task>(t, f.state);
        return true;
      }
      Task::finish(t, b, f.i, f.state, true, tally);
      lists.add(b, f.state);
    }
    return false;
  };
  int live = 0;
  while (live < kInFlight && board(flights[live])) ++live;
  while (live > 0) {
    for (int j = 0; j < live;) {
      Flight& f = flights[j];
      bool done = take_step<Task>(t, b, f.state, region, tally);
      if constexpr (kAllocates<Task>)
        if (!done && Task::wants_slab(f.state)) done = Task::supply(t, f.state, allocator.allocate(t, true));
      if (!done) {
        prefetch_for<Task>(t, f.state);
        ++j;
        continue;
      }
      Task::finish(t, b, f.i, f.state, true, tally);
      lists.add(b, f.state);
      if (board(f))
        ++j;
      else if (--live != j)
        f = flights[live];
    }
  }
  lists.flush(b);
  if constexpr (Task::kCounts) flush<Task>(b, tally);
}

template <class Task>
inline void for_each_straight(const typename Task::Table& t, const typename Task::Batch& b, u64 begin, u64 end) {
  Tally tally;
  Lists<Task> lists;
  [[maybe_unused]] AllocatorOf<Task> allocator(static_cast<u32>(begin));
  for (u64 i = begin; i < end; i += kInFlight) {
    const u64 stop = end - i < kInFlight ? end : i + kInFlight;
    for (u64 k = i; k < stop; ++k) prefetch(Task::hint(t, b, k));
    for (u64 k = i; k < stop; ++k) {
      typename Task::State state;
      Task::start(t, b, k, state);
      if constexpr (kAllocates<Task>)
        if (Task::wants_slab(state)) Task::supply(t, state, allocator.allocate(t, true));
      Task::finish(t, b, k, state, true, tally);
      lists.add(b, state);
    }
  }
  lists.flush(b);
  if constexpr (Task::kCounts) flush<Task>(b, tally);
}

// The task that a CPU runs where a family lists `Task`: a specialization names another one with the same results.
template <class Task>
struct TaskOnCpu {
  using type = Task;
};

template <class Task>
void for_each(const typename Task::Table& t, const typename Task::Batch& b, u64 begin, u64 end) {
  if constexpr (!kWalks<Task>) check_task<Task>();
  if constexpr (kWalks<Task>)
    Task::run(t, b, begin, end);
  else if constexpr (Task::kProbes || kSteps<Task>)
    for_each_stepping<Task>(t, b, begin, end);
  else
    for_each_straight<Task>(t, b, begin, end);
}

// The same with untyped addresses, for callers outside this namespace.
template <class Task>
void for_each_untyped(const void* table, const void* batch, u64 begin, u64 end) {
  for_each<typename TaskOnCpu<Task>::type>(*static_cast<const typename Task::Table*>(table),
                                           *static_cast<const typename Task::Batch*>(batch), begin, end);
}

}  // namespace warphash
