// Every bulk operation on a table with a ticket board but the insert (tickets/insert.cuh): what an element of a batch
// does from start to finish. Where a key goes is the design's (designs/stadium.cuh).
//
//   find           value and presence of each key
//   probe_counts   how many tickets find reads for each key
//   read_counts    and how many slots
//   locate         the slot of each key
//   combine        applies an upsert to keys that are there
//   erase          gives the ticket of a key's slot back
//   scan           copies all pairs out
//   audit          counts tickets that disagree with their slots
//
// A search knows three levels of certainty (section III, Retrieval): a free ticket that was never used ends it; info
// bits that differ rule the slot out; only then the key in the slot is read. It ends after as many tickets as there are
// slots.
//
// The first tickets of a walk are looked at one after another. A search that goes on behind them has a GPU look at
// kAhead tickets at once, and stops at the first of these that may be its own or is free. So a long search waits for the
// memory a quarter as often, and a warp for the longest of its searches.
//
// What runs beside each other: searches of one kernel, and in `erase` those who give tickets back. No slot is booked
// meanwhile, so what a booked slot holds is whole and stays.
#pragma once
#include "core/straight.cuh"
#include "tickets/pairs.cuh"
#include "tickets/ticket_board.cuh"

namespace warphash {

// What the tasks take of a design: the way of a key through the slots, and the hash that its info bits are of.
template <class D>
concept HasWalk = requires(const TicketTable& t, typename D::Walk& walk, const typename D::S::Word& key) {
  { D::Walk::start(t, key) } -> Same<typename D::Walk>;
  { D::Walk::resume(u32(), u32()) } -> Same<typename D::Walk>;
  { walk.advance(t, key) } -> Same<bool>;
  { D::info(t, key) } -> Same<u32>;
  walk.slot;
  walk.tried;
};

// The slots that a search can read: all of them. tickets/sweep.cuh has others.
struct Everywhere {
  WARPHASH_FN static constexpr bool has(u32) { return true; }
};

constexpr u32 kAlone = 3, kAhead = 4;  // tickets

// The ticket where a walk stands. If the walk has seen kAlone tickets, it looks at kAhead of them at once, and goes on to
// the first that it does not pass by, or to the last.
template <bool kFrozen, class Walk, class Word, class Passes>
WARPHASH_FN u32 look_ahead(const TicketTable& t, Walk& walk, const Word& key, const Passes& passes) {
  if (kPrefetches || walk.tried < kAlone) return Ticket::of(t, walk.slot).template load<kFrozen>(t);
  Walk ways[kAhead];
  u32 tickets[kAhead];
  ways[0] = walk;
#pragma unroll
  for (u32 j = 1; j < kAhead; ++j) {
    ways[j] = ways[j - 1];
    ways[j].advance(t, key);  // at its end, it stays where it is
  }
#pragma unroll
  for (u32 j = 0; j < kAhead; ++j) tickets[j] = Ticket::of(t, ways[j].slot).template load<kFrozen>(t);
  u32 ticket = tickets[kAhead - 1];
  walk = ways[kAhead - 1];
#pragma unroll
  for (u32 j = kAhead - 1; j-- > 0;) {
    if (passes(tickets[j])) continue;
    walk = ways[j];
    ticket = tickets[j];
  }
  return ticket;
}

// Who else runs while a search does.
enum class Beside { kNobody, kCombiners, kErasers };

// The way of one key through the tickets.
template <class D, Beside kBeside>
struct Search {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kFrozen = kBeside != Beside::kErasers;
  enum class At { kTicket, kSlot, kFound, kAbsent };
  Word key;
  typename D::Walk walk;
  u32 info;
  u32 reads;  // slots
  At at;
  typename S::Seen seen;  // the last of them

  WARPHASH_FN static Search start(const TicketTable& t, const Word& key) {
    return {key, D::Walk::start(t, key), Ticket::info_of(t, D::info(t, key)), 0, At::kTicket, {}};
  }
  WARPHASH_FN bool found() const { return at == At::kFound; }
  // It has come to a slot that it cannot read.
  WARPHASH_FN bool waits() const { return at == At::kSlot; }
  WARPHASH_FN void resume(u32 slot, u32 tried) {
    walk = D::Walk::resume(slot, tried);
    at = At::kSlot;
  }
  // Goes on by one ticket, or by one slot; true at the end, and at a slot that is out of reach. A GPU reads the slot
  // right away, for a CPU it is asked for first.
  template <class Reach = Everywhere>
  WARPHASH_FN bool step(const TicketTable& t, const Reach& reach = {}) {
    if (at == At::kTicket) {
      const auto is_of_another = [&](u32 ticket) {
        return !Ticket::is_free(ticket) && Ticket::info_in(ticket) != info;
      };
      const u32 ticket = look_ahead<kFrozen>(t, walk, key, is_of_another);
      if (Ticket::is_free(ticket)) return was_never_used<kFrozen>(t, walk.slot) ? end(At::kAbsent) : go_on(t);
      if (Ticket::info_in(ticket) != info) return go_on(t);
      at = At::kSlot;
      if (!reach.has(walk.slot)) return true;
      if (kPrefetches) return false;
    }
    ++reads;
    seen = S::template look<kBeside == Beside::kNobody>(S::at(t, walk.slot));
    return seen.key == key ? end(At::kFound) : go_on(t);
  }
  WARPHASH_FN const void* next(const TicketTable& t) const {
    if (at == At::kSlot) return S::at(t, walk.slot);
    return Ticket::of(t, walk.slot).word;
  }

 private:
  WARPHASH_FN bool end(At how) {
    at = how;
    return true;
  }
  WARPHASH_FN bool go_on(const TicketTable& t) {
    at = At::kTicket;
    return !walk.advance(t, key) && end(At::kAbsent);
  }
};

// What a task says of which each element searches for a key.
struct Searching : OverTickets {
  static constexpr bool kProbes = false, kSteps = true, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
};

// ---- find
template <HasWalk D>
struct FindTicket : Searching {
  using S = typename D::S;
  static constexpr bool kCounts = false;
  struct State {
    Search<D, Beside::kNobody> search;
    typename S::Value value;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    s.search = Search<D, Beside::kNobody>::start(t, key_at<S>(b, static_cast<u32>(i)));
    s.value = static_cast<typename S::Value>(b.default_value);
    return true;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const TicketBatch&, State& s) { return s.search.step(t); }
  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) { return s.search.next(t); }
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64 i, State& s, bool live, Tally&) {
    if (!live) return;
    if (b.out_values) {
      if (s.search.found()) s.value = S::value_in(s.search.seen, S::at(t, s.search.walk.slot));
      S::hand_out(b.out_values, i, s.value, S::value_bytes(t));
    }
    set_flag(b, static_cast<u32>(i), s.search.found());
  }
};

// A find, asked how many tickets it reads, or how many slots.
template <class D, bool kOfSlots>
struct SearchCounts : FindTicket<D> {
  using typename FindTicket<D>::State;
  WARPHASH_FN static void finish(const TicketTable&, const TicketBatch& b, u64 i, State& s, bool live, Tally&) {
    if (live) store_once(pointer<u32>(b.out_counts) + i, kOfSlots ? s.search.reads : s.search.walk.tried);
  }
};

constexpr u32 kNoSlot = ~0u;  // that of an absent key

template <class D>
struct LocateTicket : FindTicket<D> {
  using typename FindTicket<D>::State;
  WARPHASH_FN static void finish(const TicketTable&, const TicketBatch& b, u64 i, State& s, bool live, Tally&) {
    if (live) store_once(pointer<u32>(b.out_counts) + i, s.search.found() ? s.search.walk.slot : kNoSlot);
  }
};

// ---- combine, erase
// A search for elements that may be listed.
template <class D, Beside kBeside>
struct SeekTicket : Searching {
  using S = typename D::S;
  struct State {
    Search<D, kBeside> search;
    u32 element;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.search = Search<D, kBeside>::start(t, key_at<S>(b, s.element));
    return true;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const TicketBatch&, State& s) { return s.search.step(t); }
  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) { return s.search.next(t); }
};

template <class D>
struct CombineTicket : SeekTicket<D, Beside::kCombiners> {
  using S = typename D::S;
  using typename SeekTicket<D, Beside::kCombiners>::State;
  // Its winner may have found no room; then it waits for the larger table with it.
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64, State& s, bool live, Tally&) {
    if (!live) return;
    if (s.search.found()) S::combine_with(t, b, S::at(t, s.search.walk.slot), s.element);
    set_flag(b, s.element, s.search.found() ? kPresent : kUnplaced);
  }
};

// Of several elements with one key, one gives the ticket back. Another may have found the key before that, or finds a
// free ticket that is marked as emptied, and goes on.
template <class D>
struct EraseTicket : SeekTicket<D, Beside::kErasers> {
  using S = typename D::S;
  using typename SeekTicket<D, Beside::kErasers>::State;
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    bool erased = false;
    if (s.search.found()) {
      const u32 slot = s.search.walk.slot;
      if (t.emptied) EmptiedBit::of(t, slot).set();
      erased = Ticket::of(t, slot).give_back(t);
    }
    tally.changed += erased;
    set_flag(b, s.element, erased);
  }
};

// ---- scan, audit: the elements are the slots
template <class D>
struct ScanTickets : Straight<TicketTable, TicketBatch> {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr int kLists = 1;
  struct State {
    u8* pair;
    u64 value_bytes;
    bool booked;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch&, u64 i, State& s) {
    const u32 slot = static_cast<u32>(i);
    s = {S::at(t, slot), S::value_bytes(t), !Ticket::is_free(Ticket::of(t, slot).template load<true>(t))};
    return false;
  }
  WARPHASH_FN static void finish(const TicketTable&, const TicketBatch&, u64, State&, bool, Tally&) {}
  using Entry = State;
  WARPHASH_FN static u64* length(const TicketBatch& b, int) { return &report_of(b)->winners; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.booked; }
  WARPHASH_FN static Entry entry(const State& s) { return s; }
  WARPHASH_FN static void enter(const TicketBatch& b, int, u64 place, const Entry& e) {
    if (place >= b.room) return;  // room in the output
    const typename S::Seen seen = S::template look<true>(e.pair);
    if (b.out_keys) store_once(pointer<Word>(b.out_keys) + place, seen.key);
    if (b.out_values) S::hand_out(b.out_values, place, S::value_in(seen, e.pair), e.value_bytes);
  }
};

// A booked ticket is sound if its info bits are those of the key in the slot, and a search for the key comes to the
// slot, or to a copy of the key, which `assume_unique` may have brought in.
template <class D>
struct AuditTickets : Straight<TicketTable, TicketBatch> {
  using S = typename D::S;
  static constexpr bool kCounts = true;
  struct State {
    bool broken;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch&, u64 i, State& s) {
    const u32 slot = static_cast<u32>(i);
    const u32 ticket = Ticket::of(t, slot).template load<true>(t);
    s.broken = false;
    if (Ticket::is_free(ticket)) {
      s.broken = Ticket::info_in(ticket) != Ticket::info_of(t, ~0u);
      return false;
    }
    const typename S::Word key = S::key_of(S::at(t, slot));
    auto search = Search<D, Beside::kNobody>::start(t, key);
    s.broken = Ticket::info_in(ticket) != search.info;
    if (s.broken) return false;
    while (!search.step(t)) {
    }
    s.broken = !search.found();
    return false;
  }
  WARPHASH_FN static void finish(const TicketTable&, const TicketBatch&, u64, State& s, bool live, Tally& tally) {
    if (live) tally.mismatches += s.broken;
  }
};

}  // namespace warphash
