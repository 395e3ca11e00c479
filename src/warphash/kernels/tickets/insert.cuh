// The insert into a table with a ticket board.
//
//   settle     keys that are there: done; the rest, which are absent: leftover
//   claim      of the elements with one key, one wins (core/insert.cuh)
//   place      books a slot for a key that is in no slot and that no other element of the launch has (Figure 6)
//   relocate   places the pairs of another table
//
// How a key comes to be in one slot only. `settle` and `claim` change no ticket, so what they see holds until `place`
// begins; `place` is given each absent key once. It reads no slot, and no ticket but by the atomic that books it.
// Values of one word are combined by atomics in `settle` (keys that were there) and in `combine` (copies of new keys,
// behind `place`). For a wider value, `claim` goes first: `settle` then has each key once, and one element writes the
// value whole.
//
// Why not in one kernel. Copies of a key meet at the first free ticket of their one sequence of slots, so the loser of
// a booking could look at the winner's key. But the winner's pair is not there yet: the loser would have to wait, for
// which the paper has a further bit for each ticket (section III-B, Support for mixed operation concurrency). And until
// the pair is written, the slot may hold an erased copy of the very key, whose info bits the ticket may show by chance:
// a key would be taken for present that is not. With tickets of one bit, memory that was never written would do.
//
// The paper has no rule for keys that repeat: its insert is `place` alone, which is what assume_unique=True launches.
// All keys then cost one booking for each ticket on their way, one fetch_and for the info bits and one write of the
// pair; no slot is read.
//
// place fails after as many bookings as there are slots: then none was free at the moment the key came by.
// In a mapped file, a slot that was emptied keeps what it held (TicketTable::keeps_emptied): place gives its ticket back
// and goes on. The table gets such slots back when it is rebuilt.
// Memory order: relaxed. Only whoever booked a slot writes to it; the end of the kernel publishes the pairs.
#pragma once
#include "core/insert.cuh"
#include "tickets/bulk.cuh"

namespace warphash {

template <class D>
struct SettleTicket : SeekTicket<D, Beside::kCombiners> {
  using S = typename D::S;
  using typename SeekTicket<D, Beside::kCombiners>::State;
  static constexpr int kLists = 1;
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.probes += s.search.walk.tried;
    if (!s.search.found()) return;
    S::combine_with(t, b, S::at(t, s.search.walk.slot), s.element);
    set_flag(b, s.element, kPresent);
  }
  using Entry = u32;
  WARPHASH_FN static u64* length(const TicketBatch& b, int) { return &report_of(b)->leftover; }
  WARPHASH_FN static bool lists(int, const State& s) { return !s.search.found(); }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void enter(const TicketBatch& b, int, u64 place, Entry e) { pointer<u32>(b.leftover)[place] = e; }
};

// The way of a pair to a free slot.
template <class D>
struct Booking : Searching {
  using S = typename D::S;
  struct State {
    typename S::Word key;
    typename D::Walk walk;
    const u8* value;  // where it lies
    bool booked;
  };
  WARPHASH_FN static bool begin(const TicketTable& t, State& s, const typename S::Word& key, const u8* value) {
    s = {key, D::Walk::start(t, key), value, false};
    return true;
  }
  // A CPU asks for the slot before it writes there.
  WARPHASH_FN static bool step(const TicketTable& t, const TicketBatch&, State& s) {
    if (s.booked) return true;
    if (!kPrefetches && s.walk.tried >= kAlone)  // no atomics for the next slots that are booked already
      look_ahead<false>(t, s.walk, s.key, [](u32 ticket) { return !Ticket::is_free(ticket); });
    s.booked = Ticket::of(t, s.walk.slot).book() && may_be_written(t, s.walk.slot);
    return s.booked ? !kPrefetches : !s.walk.advance(t, s.key);
  }
  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) {
    if (s.booked) return S::at(t, s.walk.slot);
    return Ticket::of(t, s.walk.slot).word;
  }
  // Whether the caller may write to a slot that it has booked. If not, the ticket is given back as it was.
  WARPHASH_FN static bool may_be_written(const TicketTable& t, u32 slot) {
    if (!t.keeps_emptied || was_never_used<true>(t, slot)) return true;
    Ticket::of(t, slot).give_back(t);
    return false;
  }
  // Nobody waits for these writes.
  WARPHASH_FN static void inform(const TicketTable& t, const State& s) {
    Ticket::of(t, s.walk.slot).inform(t, Ticket::info_of(t, D::info(t, s.key)));
  }
  WARPHASH_FN static void put(const TicketTable& t, const State& s) {
    S::put(t, S::at(t, s.walk.slot), s.key, s.value);
  }
  WARPHASH_FN static void write(const TicketTable& t, const State& s) {
    inform(t, s);
    put(t, s);
  }
};

template <HasWalk D>
struct PlaceTicket : Booking<D> {
  using S = typename D::S;
  struct State : Booking<D>::State {
    u32 element;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    const u8* const value = pointer<const u8>(b.values) + s.element * S::value_bytes(t);
    return Booking<D>::begin(t, s, key_at<S>(b, s.element), value);
  }
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    account(b, s, tally);
    if (s.booked) Booking<D>::write(t, s);
  }
  WARPHASH_FN static void account(const TicketBatch& b, const State& s, Tally& tally) {
    tally.probes += s.walk.tried;
    tally.changed += s.booked;
    set_flag(b, s.element, s.booked ? kChanged : kUnplaced);
    if (!s.booked) atomic_add(&report_of(b)->unplaced, 1ull);
  }
};

// The elements are the slots of another table, whose keys are there, and in this table they are not.
template <class D>
struct RelocateTicket : Booking<D> {
  using S = typename D::S;
  using typename Booking<D>::State;
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    const Ticket ticket = Ticket::at(b.source_board, t.ticket_shift, i);
    s.walk.tried = 0;
    s.booked = false;
    if (Ticket::is_free(ticket.template load<true>(t))) return false;
    u8* const pair = S::at(t, b.source_slots, i);
    return Booking<D>::begin(t, s, S::key_of(pair), S::value_of(pair));
  }
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live || s.walk.tried == 0) return;
    tally.changed += s.booked;
    if (s.booked)
      Booking<D>::write(t, s);
    else
      atomic_add(&report_of(b)->unplaced, 1ull);
  }
};

}  // namespace warphash
