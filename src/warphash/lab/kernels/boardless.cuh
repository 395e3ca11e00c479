// A find in a table of stadium that reads no ticket: it compares its key with the key in each slot of its walk.
// Source: Stadium Hashing, section IV-B, Performance Breakdown. lab/figures/boards.py measures this find.
//
// Requirements: the free slots of the table hold kNoKey, which no key equals, and no key was ever erased. So the slot
// itself tells whether it is used. (In an ordinary table, a slot does not tell: tickets/pairs.cuh.)
//
//   find_unaided   write the value and the presence of each key
#pragma once
#include "designs/stadium.cuh"
#include "tickets/bulk.cuh"

namespace warphash {

constexpr u64 kNoKey = ~0ull;

template <HasWalk D>
struct FindUnaided : Searching {
  using S = typename D::S;
  static constexpr bool kCounts = false;
  struct State {
    u64 key;
    typename D::Walk walk;
    typename S::Seen seen;
    bool found;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    const u64 key = key_at<S>(b, static_cast<u32>(i));
    s = {key, D::Walk::start(t, key), {}, false};
    return true;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const TicketBatch&, State& s) {
    s.seen = S::template look<true>(S::at(t, s.walk.slot));
    s.found = s.seen.key == s.key;
    return s.found || s.seen.key == kNoKey || !s.walk.advance(t, s.key);
  }
  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) { return S::at(t, s.walk.slot); }
  WARPHASH_FN static void finish(const TicketTable&, const TicketBatch& b, u64 i, State& s, bool live, Tally&) {
    if (!live) return;
    S::hand_out(b.out_values, i, s.found ? s.seen.value : b.default_value, 0);
    set_flag(b, static_cast<u32>(i), s.found);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES \
  WARPHASH_ENTRY(find_unaided, warphash::FindUnaided<warphash::Stadium<warphash::Pairs<warphash::u64, 8>>>)
