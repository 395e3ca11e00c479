// The insert by warps: all lanes of a warp put one key at a time, under the lock of its bucket. A table with
// coordination "voter" or "spin" inserts in this way. Source: Dynamic Hash Tables on GPUs, section 4.2, Algorithm 2.
//
// Layout. Each lane has an element of the batch, and a slot of the line that the warp looks at:
//
//     lane     0       1       2            31
//          +-------+-------+-------+ - +-------+     keys of 4 bytes: lane l has slot l;
//     line | key 0 | key 1 | key 2 |   | key 31|     of N wider keys in a line, lane l has slot l mod N
//          +-------+-------+-------+ - +-------+
//
// Protocol, a round of a warp:
//   1. A ballot tells which lanes have an element that is not done. If there is none, the warp takes up its next
//      elements. Otherwise one of these lanes becomes the leader.
//   2. The leader's key and bucket go to all lanes.
//   3. The leader tries to take the lock of the bucket, once: compare-and-swap of 0 for 1, acquire. A ballot tells all
//      lanes whether it has the lock. If not, the round ends.
//   4. A barrier of the warp. The leader has acquired what the last owner of the lock wrote, and the barrier makes that
//      visible to the other lanes. Each lane reads its slot (relaxed). Ballots tell all lanes where the key is, and
//      which slot is vacant first.
//   5. A barrier of the warp: all lanes have read. The leader takes the next step of its element, and changes the bucket
//      alone (stores, relaxed).
//   6. The leader frees the lock: store of 0, release.
//
// Who leads. With "voter", the lanes with an element lead in turn. So a lane that did not get its lock tries again after
// all others, and a warp spins only on its last element. With "spin", the first lane with an element leads: the warp
// puts one pair after the other, and spins on each lock. A warp has at most one lock, and waits for no other warp while
// it has a lock, so no warp waits for ever.
//
// The steps of step 5 are those of `settle` and `place` (subtables/insert.cuh), for the reasons given there. The leader
// confirms nothing that it saw, since no other thread has the lock.
//   settle  looks at one bucket of the key in each round, from the first one on. The first bucket with room is noted. If
//           the key may be in buckets behind it, the lane looks there, and then comes back for the lock of the bucket
//           with room. If that bucket has filled up meanwhile, the lane goes on to the next one with room. Mostly the
//           key can be in its first bucket only, and one round puts the pair. Wide keys take the same way: no lane reads
//           a key that is being written.
//   place   puts the pair into a bucket with room. It exchanges the pair for that of a random slot in a full bucket.
//
// Why no lane takes up its next element before its neighbours are done: all lanes read for the leader, so a warp with
// one element left has no idle lane.
//
// Registers. With 4 blocks on a processor, `place` would spill for keys of 128 bytes.
//
// Departures from Algorithm 2, which inserts into one subtable i.
//   - A key that lives in another subtable would be stored twice. Here `settle` looks in all buckets of the key, and a
//     kernel that leaves one element of each key runs before any eviction (core/insert.cuh).
//   - Line 3 does not say which lane wins the ballot. If the same lane always won, a warp would spin on its lock.
//   - Line 12 takes the first slot that is empty or has the key. A vacant slot may lie in front of the slot with the
//     key, and the key would be in the bucket twice. Here the slot with the key is taken.
//   - Line 18 takes the first slot that is not empty. The text says a random one, and here the slot is random.
//   - Line 20 exchanges the broadcast copy of the pair. Here the leader's own pair is exchanged, since that pair goes
//     on to the next subtable.
//   - The paper updates the value of a present key in the same round. Here no value changes before all keys have a place
//     (`combine`), and each lane does that for its own key.
#pragma once
#include "core/gpu/schedule.cuh"
#include "subtables/insert.cuh"

namespace warphash {

// ---- the steps of an element whose bucket was seen under its lock, which the step keeps
template <class D>
struct SettleUnderLock : SettlePair<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Outcome = Settling::Outcome;
  using typename SettlePair<D>::State;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const bool pending = SettlePair<D>::start(t, b, i, s);
    s.goes_to = kNowhere;  // a wide key, too, may go into any of its buckets: no look is torn
    return pending;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (seen.hit >= 0) {
      s.outcome = Outcome::kPresent;
      return true;
    }
    if (seen.vacant < S::kSlots && s.goes_to == kNowhere) {
      s.goes_to = s.probe.bucket;
      s.overflows = !s.probe.at_first(t);
    } else if (seen.vacant == S::kSlots && s.walked) {  // it filled up: the key goes to another, where a copy may be
      s.goes_to = kNowhere;
      s.walked = false;
      s.probe.leave_for_good(t);
    }
    if (!s.walked && s.probe.advance(t, seen, s.goes_to == kNowhere)) return false;
    s.walked = true;
    if (s.goes_to == kNowhere) {
      s.outcome = Outcome::kLeftover;
    } else if (s.goes_to != s.probe.bucket) {
      s.probe.bucket = s.goes_to;  // back to the bucket with room, for its lock
    } else {
      const auto& key = s.probe.named.key;
      D::put(t, s.goes_to, static_cast<u32>(seen.vacant), key, D::Value::of(b, s.element, S::value_bytes(t)));
      if (s.overflows) OverflowFilter::of<S>(t, subtable_of(s.goes_to), digest(t, key)).add();
      s.outcome = Outcome::kInserted;
    }
    return s.outcome != Outcome::kOpen;
  }
};

template <class D>
struct PlaceUnderLock : PlacePair<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using typename PlacePair<D>::State;
  static constexpr u32 kBlocks = sizeof(typename S::Word) > 64 ? 3 : PlacePair<D>::kBlocks;
  WARPHASH_FN static bool step(const Table& t, const Batch&, State& s, const BucketView<S>& seen) {
    s.outcome = D::template step<true>(t, s.placement, seen);
    return s.outcome != Placed::kGoesOn;
  }
};

// ---- the schedule
// The lane that leads the next round, one of those in `pending`, which is not empty. `leader` led the last one.
WARPHASH_FN u32 elect(const SubtableTable& t, u32 pending, u32 leader) {
  if (t.coordination == kSpin) return first_bit(pending);
  const u32 behind = pending & ~((2u << leader) - 1);
  return first_bit(behind ? behind : pending);
}

// What the lanes of a warp learn of a line together: lane l reads slot l. All of them call it.
template <class S>
WARPHASH_FN BucketView<S> look_together(const typename S::Item* line, const typename S::Word& key, i32 region) {
  const typename S::Item item = {load_relaxed(&line[lane() & (S::kSlots - 1)].key)};
  const u32 hits = ballot(item.key == key) & S::kAllSlots;
  const u32 vacant = ballot(S::is_vacant(item)) & S::kAllSlots;
  const u32 empty = ballot(S::is_empty(item));
  BucketView<S> seen = BucketView<S>::full();
  if (hits) seen.hit = static_cast<i32>(first_bit(hits));
  if (vacant) seen.vacant = static_cast<i32>(first_bit(vacant));
  seen.open = region > 0 && (empty >> (region - 1) & 1);
  return seen;
}

// The task, a key at a time. The numbers of the steps are those of the protocol above.
template <class Task>
struct ByWarps : Task {
  using Table = typename Task::Table;
  using Batch = typename Task::Batch;
  using S = typename Task::S;
  using Word = typename S::Word;
  static constexpr bool kWalks = true;
  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    check_task<Task>();
    const u64 n = b.count ? *reinterpret_cast<const u64*>(b.count) : b.n;
    const i32 region = Task::region(t);
    Tally tally;
    for (u64 i = thread_in_grid(); i - lane() < n; i += threads_in_grid()) {
      const bool live = i < n, suspend = suspended(b, i / kWarpLanes);
      typename Task::State state;
      bool pending = live && Task::start(t, b, i, state);
      if (suspend) pending = pending && Task::suspend(state);
      u32 leader = kWarpLanes - 1;
      for (u32 votes = ballot(pending); votes; votes = ballot(pending)) {
        leader = elect(t, votes, leader);  // 1
        const bool leads = lane() == leader;
        const u32 bucket = shuffle(pending ? state.bucket() : 0u, leader, 32);  // 2
        u32* const lock = S::lock_at(t, bucket);
        if (!any(leads && try_lock(lock))) continue;  // 3
        const Word key = shuffle(pending ? state.key() : Word{}, leader, 32);
        warp_barrier();  // 4
        const BucketView<S> seen = look_together<S>(S::at(t, bucket), key, region);
        warp_barrier();  // 5
        if (!leads) continue;
        ++tally.probes;
        pending = !Task::step(t, b, state, seen);
        unlock(lock);  // 6
      }
      Task::finish(t, b, i, state, live, tally);
      count_subtables<Task>(t, tally);
      if constexpr (Task::kLists > 0) enter_lists_of_warp<Task>(b, state, live);
    }
    flush<Task>(b, tally);
  }
};

template <class D>
using SettleByWarps = ByWarps<SettleUnderLock<D>>;
template <class D>
using PlaceByWarps = ByWarps<PlaceUnderLock<D>>;

}  // namespace warphash
