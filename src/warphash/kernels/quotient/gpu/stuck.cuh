// Keys for which both buckets are full, in an update that has put all others without locks (quotient/gpu/put.cuh): a key
// of the home moves to its second bucket, and the new key takes its place. Some lanes have an element together.
//
// Protocol of an element, in turns. Nothing is held between two turns. In each of them,
//   1. each lane looks at a key of the home that could move, and at the second bucket of that key. The first lane whose
//      bucket has a vacant slot is chosen. If there is none, the element is left.
//   2. The first lane of the group takes the locks of the home and of that bucket, the lower one first. If one of them is
//      taken, the element has another turn.
//   3. It reads the lines again. If the key of the element has come meanwhile, it combines the value. If a slot of the home
//      has become vacant, the key takes it. If the chosen key is still there, and its second bucket still has a vacant
//      slot, it moves, and the new key takes its slot. Otherwise the element has another turn.
//   4. It returns the locks.
// An element that is not done after kMostTurns is left to one block, which comes next (quotient/gpu/few.cuh).
//
// Why a key is never doubled. All that is done to a key is done under the lock of its home, as in quotient/gpu/locked.cuh.
// A guest does not move, so the second bucket of the element is read without its lock: only a lane with the lock of the
// home puts the key there.
//
// Why several lanes. There are few such elements, and each reads up to a dozen lines. One lane would wait for one line
// after another, and for a lock before each: a few hundred elements took 30 us of an H200 in that way.
//
// Adopted pairs. While the table has any, all elements are left.
//
// Memory order. Step 1 is relaxed, and nothing follows from it but the choice. Steps 2 to 4 are as in
// quotient/gpu/locked.cuh.
#pragma once
#include "quotient/gpu/locked.cuh"

namespace warphash {

template <class D>
struct PutStuck {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using S = typename D::S;
  using Word = typename S::Word;
  using Steps = ChangeUnderLocks<D, BitLocks>;
  using Element = typename Steps::Element;
  using Result = typename Steps::Result;
  static constexpr bool kWalks = true, kCounts = true;
  static constexpr u32 kLanes = 8, kMostTurns = 8;

  WARPHASH_FN static void run(const QuotientTable& t, const OneLaunchBatch& b) {
    if constexpr (S::kFieldIsOneStore) do_list(t, b);
  }

 private:
  // A key that can move, by its slot in the home, and where to.
  struct Move {
    u32 slot, to;
  };

  WARPHASH_FN static void do_list(const QuotientTable& t, const OneLaunchBatch& b) {
    const u64 n = *pointer<const u64>(b.count);
    const u64 group = thread_in_grid() / kLanes, groups = threads_in_grid() / kLanes;
    const u64 in_warp = group % (kWarpLanes / kLanes);
    const bool waits = Adopted<D>{b}.count() > 0;
    Tally tally;
#pragma unroll 1
    for (u64 first = group - in_warp; first < n; first += groups) update(t, b, first + in_warp, n, waits, tally);
    flush<PutStuck>(b, tally);
  }

  WARPHASH_FN static bool is_first() { return lane() % kLanes == 0; }

  // Element i of the list, if it is one of `n`. All lanes of a warp call it.
  WARPHASH_FN static void update(const QuotientTable& t, const OneLaunchBatch& b, u64 i, u64 n, bool waits,
                                 Tally& tally) {
    const bool live = i < n;
    Element e = {};
    if (live) e = Steps::element(t, b, element_of(b, i));
    Result result = live && !waits ? Steps::kAgain : Steps::kLeft;
    for (u32 turn = 0; turn < kMostTurns && any(result == Steps::kAgain); ++turn) {
      const bool pending = result == Steps::kAgain;
      count_round(pending);
      Move move = {0, Steps::kNone};
      const bool found = find_move(t, e, pending, move);
      if (pending) result = found ? Steps::kAgain : Steps::kLeft;
      if (pending && found && is_first()) result = try_move(t, b, e, move, tally);
      result = static_cast<Result>(shuffle(static_cast<u32>(result), 0, kLanes));
    }
    const bool left = live && (result == Steps::kLeft || result == Steps::kAgain);
    if (live && !left && is_first()) Steps::enter(b, e, result, tally);
    leave(b, left && is_first(), e.number);
  }

  // Step 1. All lanes of a warp call it; those of a group learn the same.
  WARPHASH_FN static bool find_move(const QuotientTable& t, const Element& e, bool pending, Move& move) {
    const u32 own = lane() % kLanes, first_lane = lane() - own, home = e.home.bucket;
    bool looks = pending;
#pragma unroll 1
    for (u32 first = 0; first < S::kSlots && any(looks); first += kLanes) {
      const u32 slot = first + own;
      u32 to = home, free = 0;
      if (looks && slot < S::kSlots) {
        to = other_bucket(t, home, slot);
        if (to != home) {
          u32 words[kLineWords];
          read_shared<S>(line_at(t, to), words);
          free = ~S::occupied(words) & S::kAllSlots;
        }
      }
      const u32 can = ballot(free != 0) >> first_lane & ((1u << kLanes) - 1), chosen = can ? first_bit(can) : 0;
      const Move found = {first + chosen, shuffle(to, chosen, kLanes)};
      if (!looks || !can) continue;
      move = found;
      looks = false;
    }
    return pending && !looks;
  }

  // The second bucket of a key in its home; the home itself for a guest, and for a vacant slot.
  WARPHASH_FN static u32 other_bucket(const QuotientTable& t, u32 home, u32 slot) {
    const u32 field = S::field_now(line_at(t, home)->words, slot);
    if (!(field & S::kOccupied) || (field & S::kGuest)) return home;
    return Steps::second_of(t, {home, S::remainder_in(field)});
  }

  // Steps 2 to 4, of one lane.
  WARPHASH_FN static Result try_move(const QuotientTable& t, const OneLaunchBatch& b, const Element& e,
                                     const Move& move, Tally& tally) {
    const BitLocks locks = {locks_of(t)};
    const bool home_first = e.home.bucket < move.to;
    const u32 low = home_first ? e.home.bucket : move.to, high = home_first ? move.to : e.home.bucket;
    if (!locks.try_lock(low)) return Steps::kAgain;
    Result result = Steps::kAgain;
    if (locks.try_lock(high)) {
      result = make(t, b, e, move, tally);
      locks.unlock(high);
    }
    locks.unlock(low);
    return result;
  }

  WARPHASH_FN static Result make(const QuotientTable& t, const OneLaunchBatch& b, const Element& e, const Move& move,
                                 Tally& tally) {
    Line* const home = line_at(t, e.home.bucket);
    Line* const second = line_at(t, Steps::second_of(t, e.home));
    Line* const target = line_at(t, move.to);
    u32 here[kLineWords], there[kLineWords];
    read_shared<S>(home, here);
    read_shared<S>(second, there);
    tally.probes += 2;
    if (const u32 hits = S::matches(here, e.home.remainder, false)) return Steps::combine_in(home, hits, b, e);
    if (const u32 hits = S::matches(there, e.home.remainder, true)) return Steps::combine_in(second, hits, b, e);
    if (const u32 vacant = ~S::occupied(here) & S::kAllSlots) return Steps::put(home, vacant, false, e);
    if (other_bucket(t, e.home.bucket, move.slot) != move.to) return Steps::kAgain;
    read_shared<S>(target, there);
    ++tally.probes;
    const u32 free = ~S::occupied(there) & S::kAllSlots;
    if (!free) return Steps::kAgain;
    const Word remainder = S::remainder_in(S::field_now(home->words, move.slot));
    const Element other = {0, {e.home.bucket, remainder}, Steps::value_in(home, move.slot), false};
    Steps::put(target, free, true, other);
    fetch_or(home->words, D::filter_bit(remainder));
    return Steps::put(home, 1u << move.slot, false, e);
  }

  // All lanes of a warp call it.
  WARPHASH_FN static void leave(const OneLaunchBatch& b, bool left, u32 element) {
    const u32 votes = ballot(left);
    if (!votes) return;
    u64 base = 0;
    if (lane() == first_bit(votes)) base = fetch_add(&report_of(b)->leftover, static_cast<u64>(bit_count(votes)));
    base = shuffle(base, first_bit(votes), kWarpLanes);
    if (left) pointer<u32>(b.left_out)[base + bit_count(votes & ((1u << lane()) - 1))] = element;
  }
};

}  // namespace warphash
