// An update of a few elements for each range: a lane has an element, and a lock of the buckets that it changes. Elements
// that find no place in this way are left to one block, which comes next (quotient/gpu/few.cuh). Where a slot is filled
// by one store, large updates that combine no values go without locks (quotient/gpu/put.cuh).
//
// Why. To bring elements to their ranges takes several kernels, and the host has as many to launch. Where a range gets
// few elements, most of the time of a batch goes there. Here an element costs two atomic operations, and the line or
// the two lines that it reads anyway. Very few elements have that one block for themselves, whose threads share the
// locks. The steps are the same.
//
// Protocol of an element, in turns. Nothing is held between two turns. In each of them, the lane
//   1. takes the lock of the home bucket, and reads the line. If the key is there, it combines the value.
//   2. puts an absent key into a vacant slot of its home, unless the filter says that the key may be a guest.
//   3. If it may be, or if the home has no vacant slot: takes the lock of the second bucket, too, and reads that line.
//      If the key is there, it combines the value. Otherwise the key takes a vacant slot of its home; or, as a guest, of
//      the second bucket, and its bit in the filter of its home.
//   4. If both are full: takes the lock of the second bucket of a key of this home, and moves that key there, if there
//      is a vacant slot. The new key takes its place. Otherwise tries the next key of this home.
//   5. returns the locks.
// A key for which step 4 finds no room is left to the block, which searches further. Locks of steps 1 and 3 are taken in
// the order of the buckets: a lane whose second bucket is the lower one returns the lock of the home, and takes both in
// its next turn. No lane waits for a lock. One that finds the lock of step 1 or 3 taken has another turn, and is left
// to the block after kMostRefusals. One that finds a lock of step 4 taken tries the next key.
//
// Why a key is never doubled. All that is done to a key is done under the lock of its home, moves included. So a key
// that is in neither bucket is not put there by another lane meanwhile. Only keys in their home move, and their bits in
// the filter are set before the lock of the home returns. No key leaves the filter.
//
// Crowds. Where one key is in a good part of the batch, its lanes would get the lock one after another. Of the lanes of
// a warp with one home, the first has a turn at once, the second a turn later, and the others are left to the block.
// A warp with such lanes gives up earlier: lanes of other warps want the same locks.
//
// Adopted pairs. While the table has any, all elements are left: their keys may be among those.
//
// A table after such a launch is as the ranges leave it: no pair has been displaced, a guest has its bit in the filter,
// and all locks are free.
//
// Memory order. Lines are read by relaxed loads and written by plain stores, under their locks (platform/bit_locks.cuh).
#pragma once
#include "core/bulk.cuh"
#include "core/gpu/schedule.cuh"
#include "platform/bit_locks.cuh"
#include "quotient/gpu/adopted.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/place.cuh"

namespace warphash {

// The locks: behind `starts`, a bit for each bucket; all 0 between two kernels.
WARPHASH_FN u32* locks_of(const QuotientTable& t) { return pointer<u32>(t.starts) + t.ranges; }

template <class D, class Locks>
struct ChangeUnderLocks {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr u32 kMostAlike = 2;                        // lanes of a warp with one home that have a turn
  static constexpr u32 kMostRefusals = 8, kMostInCrowds = 1;  // after which an element is left
  static constexpr u32 kNone = ~0u;

  struct Element {
    u32 number;
    Home<Word> home;
    typename S::Value operand;
    bool second_first;  // the second bucket is the lower one, and needed
  };
  enum Result : u8 { kAgain, kFound, kAdded, kLeft };

  WARPHASH_FN static Element element(const QuotientTable& t, const QuotientBatch& b, u32 number) {
    return {number, D::home_of(t, permuted(t, key_at<S>(b, number))), S::value_at(b, number), false};
  }

  // Has the elements of a warp updated, as far as they are live. All its lanes call it. kLeft: to the block.
  WARPHASH_FN static Result in_turns(const QuotientTable& t, const QuotientBatch& b, const Locks& locks, Element& e,
                                     bool live, Tally& tally) {
    const u32 rank = rank_of(e.home.bucket, live);
    Result result = !live || rank < kMostAlike ? kAgain : kLeft;
    const u32 most = any(rank >= kMostAlike) ? kMostInCrowds : kMostRefusals;
    u32 refusals = 0;
    for (u32 turn = 0; any(live && result == kAgain && refusals <= most); ++turn) {
      const bool pending = live && result == kAgain && refusals <= most;
      count_round(pending);
      if (pending && turn >= rank) result = has_turn(t, b, locks, e, refusals, tally);
    }
    return result == kAgain ? kLeft : result;
  }
  // Once an element is done.
  WARPHASH_FN static void enter(const QuotientBatch& b, const Element& e, Result result, Tally& tally) {
    set_flag(b, e.number, result == kAdded ? kChanged : kPresent);
    tally.changed += result == kAdded;
  }

  WARPHASH_FN static u32 second_of(const QuotientTable& t, const Home<Word>& home) {
    return D::second_of(t, D::first_of_range(t, home.bucket), home);
  }
  WARPHASH_FN static Result combine_in(Line* line, u32 hits, const QuotientBatch& b, const Element& e) {
    if constexpr (S::kHasValue) combine(S::value(line->words, first_bit(hits)), e.operand, b.op, b.kind);
    return kFound;
  }

  WARPHASH_FN static typename S::Value value_in(Line* line, u32 slot) {
    if constexpr (S::kHasValue) return load_relaxed(S::value(line->words, slot));
    return 0;
  }

  // Puts the key into the first of some vacant slots of a line.
  WARPHASH_FN static Result put(Line* line, u32 vacant, bool guest, const Element& e) {
    const u32 slot = first_bit(vacant);
    S::put_beside(line->words, slot, e.home.remainder, guest);
    if constexpr (S::kHasValue) *S::value(line->words, slot) = e.operand;
    return kAdded;
  }

 private:
  // How many earlier lanes of the warp have this bucket. All lanes call it.
  WARPHASH_FN static u32 rank_of(u32 bucket, bool live) {
    const u32 mine = live ? bucket : kNone;
    u32 rank = 0;
#pragma unroll
    for (u32 k = 0; k < kWarpLanes; ++k) rank += (shuffle(mine, k, kWarpLanes) == mine) & (k < lane());
    return rank;
  }

  WARPHASH_FN static Result has_turn(const QuotientTable& t, const QuotientBatch& b, const Locks& locks, Element& e,
                                     u32& refusals, Tally& tally) {
    const u32 home = e.home.bucket;
    u32 second = kNone;  // once this lane has its lock
    if (e.second_first) {
      second = second_of(t, e.home);
      if (!locks.try_lock(second)) return ++refusals, kAgain;
    }
    Result result = kAgain;
    if (locks.try_lock(home)) {
      result = update(t, b, locks, e, second, refusals, tally);
      locks.unlock(home);
    } else {
      ++refusals;
    }
    if (second != kNone) locks.unlock(second);
    return result;
  }

  // With the lock of the home, and with that of the second bucket, if there is one.
  WARPHASH_FN static Result update(const QuotientTable& t, const QuotientBatch& b, const Locks& locks, Element& e,
                                   u32& second, u32& refusals, Tally& tally) {
    const Home<Word>& home = e.home;
    Line* const first_line = line_at(t, home.bucket);
    u32 first[kLineWords];
    read_shared<S>(first_line, first);
    ++tally.probes;
    if (const u32 hits = S::matches(first, home.remainder, false)) return combine_in(first_line, hits, b, e);
    const u32 vacant = ~S::occupied(first) & S::kAllSlots;
    if (vacant && !(first[0] & D::filter_bit(home.remainder))) return put(first_line, vacant, false, e);
    if (second == kNone) {
      const u32 bucket = second_of(t, home);
      e.second_first = bucket < home.bucket;
      if (e.second_first) return kAgain;
      if (!locks.try_lock(bucket)) return ++refusals, kAgain;
      second = bucket;
    }
    Line* const second_line = line_at(t, second);
    u32 other[kLineWords];
    read_shared<S>(second_line, other);
    ++tally.probes;
    if (const u32 hits = S::matches(other, home.remainder, true)) return combine_in(second_line, hits, b, e);
    if (vacant) return put(first_line, vacant, false, e);
    const u32 free = ~S::occupied(other) & S::kAllSlots;
    if (!free) return make_room(t, locks, e, second);
    fetch_or(first_line->words, D::filter_bit(home.remainder));
    return put(second_line, free, true, e);
  }

  // Moves a key of this home to its second bucket, and puts the new key into its slot. Both buckets of the new key are
  // full, and it has their locks.
  WARPHASH_FN static Result make_room(const QuotientTable& t, const Locks& locks, const Element& e, u32 second) {
    Line* const line = line_at(t, e.home.bucket);
    u32 here[kLineWords], there[kLineWords];
    read_shared<S>(line, here);
#pragma unroll 1  // copies of the body for each slot would take the compiler long, and more registers
    for (u32 slot = 0; slot < S::kSlots; ++slot) {
      if (S::is_guest(here, slot)) continue;
      const Element other = {0, {e.home.bucket, S::remainder(here, slot)}, value_in(line, slot), false};
      const u32 to = second_of(t, other.home);
      if (to == second || to == e.home.bucket || !locks.try_lock(to)) continue;
      Line* const target = line_at(t, to);
      read_shared<S>(target, there);
      const u32 free = ~S::occupied(there) & S::kAllSlots;
      if (free) {
        put(target, free, true, other);
        fetch_or(line->words, D::filter_bit(other.home.remainder));
        S::vacate(line->words, slot);
        put(line, 1u << slot, false, e);
      }
      locks.unlock(to);
      if (free) return kAdded;
    }
    return kLeft;
  }
};

template <class D>
struct UpdateLocked {
  using Table = QuotientTable;
  using Batch = OneLaunchBatch;
  using Steps = ChangeUnderLocks<D, BitLocks>;
  static constexpr bool kWalks = true, kCounts = true;
  static constexpr u32 kBlocks = 6;  // without it, 48 registers a thread leave room for five

  WARPHASH_FN static void run(const QuotientTable& t, const OneLaunchBatch& b) {
    const u64 i = thread_in_grid();
    const bool live = i < b.n, waits = Adopted<D>{b}.count() > 0;
    typename Steps::Element e = {};
    if (live) e = Steps::element(t, b, element_of(b, i));
    Tally tally;
    const auto result = Steps::in_turns(t, b, {locks_of(t)}, e, live && !waits, tally);
    const bool left = live && (waits || result == Steps::kLeft);
    if (live && !left) Steps::enter(b, e, result, tally);
    const u64 place = reserve(&report_of(b)->leftover, left);
    if (left) pointer<u32>(b.left_out)[place] = e.number;
    flush<UpdateLocked>(b, tally);
  }
};

}  // namespace warphash
