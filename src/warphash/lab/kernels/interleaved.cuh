// A slice of inserts and finds that run beside each other in one kernel, on a table of stadium.
// Source: Stadium Hashing, section IV-A, Figures 14 and 15. lab/figures/slices.py measures it.
//
//   interleaved   element i inserts its pair, or looks its key up, as TicketBatch::operations says (kInsertKey, kFindKey).
//                 An insert is the paper's own, `place` (tickets/insert.cuh): no slot is read, and no repeat noticed.
//                 A lane does each element, or lanes collaborate (gpu/interleaved.cuh).
//
// Requirements of the caller:
//   1. The keys that a slice inserts are distinct, and in no slot.
//   2. A slice looks up no key that it inserts.
//   3. No key was erased since the table was cleared. Before the first slice, all slots hold the bits of a pair whose
//      key nobody looks up.
//
// What a find sees of a slot that is under way, and why its answer is right. The booking, the info bits and the pair are
// three accesses of another thread, in no order:
//   ticket free       Either nobody has booked the slot, or the booking is not visible yet. The search ends. That is
//                     right: an earlier launch has put a present key into its slot, after it found every slot before it
//                     booked. The end of that launch made these bookings visible. So a search for a present key meets no
//                     free ticket before its slot.
//   ticket booked     The info bits are ones until they are written. In either case the search goes on, or reads the slot.
//   slot read         The pair is one word of 64 bits, written by one store and read by one load, so no half of it is
//                     seen. It is the new pair, whose key is another (2.), or what the slot held before, which is no key
//                     that is looked up (3.). The search goes on.
// A slot that an earlier launch filled does not change.
//
// Memory order: relaxed. Loads are not read-only ones, since other threads of the launch write to the same words. The
// end of a launch orders what it wrote before the next.
//
// Why pairs of 4 + 4 bytes alone. A wider pair is written by several stores, so a find could read a new key with an old
// value, or parts of two keys. Mixed batches of a table serve all words, and need an access bit for that
// (tickets/execute.cuh).
#pragma once
#include "designs/stadium.cuh"
#include "tickets/insert.cuh"

namespace warphash {

// Pairs that are read and written whole, beside each other.
struct LivePairs : Pairs<u32, 4> {
  using Whole = Slot<u32, true>;
  template <bool>
  WARPHASH_FN static Seen look(const u8* pair) {
    const Whole whole = load_slot<false>(reinterpret_cast<const Whole*>(pair));
    return {whole.key, whole.value};
  }
  WARPHASH_FN static void put(const TicketTable&, u8* pair, u32 key, const u8* value) {
    const Whole whole = {key, load_once(reinterpret_cast<const u32*>(value))};
    store_relaxed(reinterpret_cast<u64*>(pair), __builtin_bit_cast(u64, whole));
  }
};

template <HasWalk D>
struct Interleaved : Searching {
  using S = typename D::S;
  using Finding = Search<D, Beside::kErasers>;  // no read-only loads
  struct State {
    union {  // a job of collaborating lanes is short
      Finding search;
      typename PlaceTicket<D>::State place;
    };
    bool inserts;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    s.inserts = load_once(pointer<const u8>(b.operations) + i) == kInsertKey;
    if (s.inserts) return PlaceTicket<D>::start(t, b, i, s.place);
    s.search = Finding::start(t, key_at<S>(b, static_cast<u32>(i)));
    return true;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const TicketBatch& b, State& s) {
    return s.inserts ? PlaceTicket<D>::step(t, b, s.place) : s.search.step(t);
  }
  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) {
    return s.inserts ? PlaceTicket<D>::next(t, s.place) : s.search.next(t);
  }
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64 i, State& s, bool live, Tally& tally) {
    if (!live) return;
    if (s.inserts) return PlaceTicket<D>::finish(t, b, i, s.place, live, tally);
    const bool found = s.search.found();
    S::hand_out(b.out_values, i, found ? s.search.seen.value : static_cast<u32>(b.default_value), 0);
    set_flag(b, static_cast<u32>(i), found);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES \
  WARPHASH_ENTRY(interleaved, warphash::Interleaved<warphash::Stadium<warphash::LivePairs>>)
