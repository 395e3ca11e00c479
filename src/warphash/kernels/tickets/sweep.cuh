// Operations on slots that lie in the memory of the host, a window of them at a time.
// Source: Stadium Hashing, section III, has the tickets answer before a slot is read; the order by windows is ours.
//
// Layout. Beside the batch there are two words of 32 bits for each element i of the launch:
//   targets[i]  kNotBegun; the slot that the element waits for; or kDone
//   tried[i]    how many tickets its walk has seen, that of the slot included
// A window is the slots [window_first, window_first + window_slots). TicketTable::slots is such that these slots lie at
// their usual places, wherever they were copied to.
//
// Protocol
//   1. A launch with an empty window begins all elements. Each walks over the tickets until it needs a slot. It leaves
//      the slot's number and waits; or it ends, as an absent key mostly does.
//   2. A launch for each window, in the order of the slots. Who waits for a slot of the window goes on from there: to its
//      end, or until it needs a slot outside.
//   3. Elements may now wait for windows that have passed: those whose slot had the same info bits, and another key.
//      They are few, and get another round.
// `waiting` counts who waits for a slot that lies before the window, or has no window yet. Round 1 and each round of 2
// thus tell who is left.
// A window may have all slots: then one launch does the rest, wherever they lie. This is the paper's way, in which each
// element goes through the bus on its own.
//
// Which way. `sample` walks for a few elements of a batch over the tickets, and counts in `waiting` who needs a slot. It
// changes nothing. If few of them do, the batch goes through the bus one by one from its start, without the rounds.
//
// An insert books and informs its ticket in round 1, as in insert.cuh, and writes its pair in round 2. Between the two the
// slot is booked and its pair is not there. Only `place` and `relocate` run meanwhile, and they read no slot.
//
// Why no sort by slots. A launch reads 4 bytes of each element to find those of its window. With 128 windows that is 512
// bytes an element, at the full rate of the device's memory: a tenth of the time in which the windows cross the bus.
// Memory order: that of the operations, which is relaxed; rounds are launches, whose ends order them.
#pragma once
#include "tickets/entries.cuh"

namespace warphash {

constexpr u32 kNotBegun = ~0u, kDone = ~0u - 1;  // in no window: a table has at most 2^32 - 16 slots

struct Window {
  u64 first, slots;

  WARPHASH_FN static Window of(const SweepBatch& b) { return {b.window_first, b.window_slots}; }
  WARPHASH_FN bool has(u32 slot) const { return slot - first < slots; }
};

// The element i of a launch on its way through the windows.
struct Waiting {
  WARPHASH_FN static u32 target(const SweepBatch& b, u64 i) { return load_once(pointer<const u32>(b.targets) + i); }
  WARPHASH_FN static u32 tried(const SweepBatch& b, u64 i) { return load_once(pointer<const u32>(b.tried) + i); }
  WARPHASH_FN static void end(const SweepBatch& b, u64 i) { store_once(pointer<u32>(b.targets) + i, kDone); }
  WARPHASH_FN static void wait(const SweepBatch& b, u64 i, u32 slot, u32 tried) {
    store_once(pointer<u32>(b.targets) + i, slot);
    store_once(pointer<u32>(b.tried) + i, tried);
    if (slot < b.window_first) atomic_add(pointer<u64>(b.waiting), 1ull);
  }
};

// A task whose elements search for a key.
template <class Task>
struct SearchesWindows : Task {
  using Batch = SweepBatch;
  struct State : Task::State {
    bool here;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const SweepBatch& b, u64 i, State& s) {
    const u32 target = Waiting::target(b, i);
    s.here = target == kNotBegun || Window::of(b).has(target);
    if (!s.here) return false;
    Task::start(t, b, i, s);
    if (target != kNotBegun) s.search.resume(target, Waiting::tried(b, i));
    return true;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const SweepBatch& b, State& s) {
    return s.search.step(t, Window::of(b));
  }
  WARPHASH_FN static void finish(const TicketTable& t, const SweepBatch& b, u64 i, State& s, bool live, Tally& tally) {
    if (!live || !s.here) return;
    s.here = !s.search.waits();
    if (!s.here) return Waiting::wait(b, i, s.search.walk.slot, s.search.walk.tried);
    Waiting::end(b, i);
    Task::finish(t, b, i, s, true, tally);
  }
};

// With a list, in which only those are entered that have come to their end.
template <class Task>
struct ListsWindows : SearchesWindows<Task> {
  using typename SearchesWindows<Task>::State;
  WARPHASH_FN static u64* length(const SweepBatch& b, int list) { return Task::length(b, list); }
  WARPHASH_FN static bool lists(int list, const State& s) { return s.here && Task::lists(list, s); }
  WARPHASH_FN static typename Task::Entry entry(const State& s) { return Task::entry(s); }
  WARPHASH_FN static void enter(const SweepBatch& b, int list, u64 place, typename Task::Entry e) {
    Task::enter(b, list, place, e);
  }
};

// Element i stands for others. Multiples of the golden ratio spread the sample evenly, and at no regular distance.
template <class D>
struct SampleTickets : SeekTicket<D, Beside::kNobody> {
  using Batch = SweepBatch;
  using Seek = SeekTicket<D, Beside::kNobody>;
  using typename Seek::State;
  WARPHASH_FN static bool start(const TicketTable& t, const SweepBatch& b, u64 i, State& s) {
    const u32 spread = static_cast<u32>(i) * 0x9E3779B9u;
    return Seek::start(t, b, spread * b.sampled >> 32, s);
  }
  WARPHASH_FN static bool step(const TicketTable& t, const SweepBatch&, State& s) {
    return s.search.step(t, Window{0, 0});
  }
  WARPHASH_FN static void finish(const TicketTable&, const SweepBatch& b, u64, State& s, bool live, Tally&) {
    if (live && s.search.waits()) atomic_add(pointer<u64>(b.waiting), 1ull);
  }
};

template <class D>
struct PlaceInWindows : PlaceTicket<D> {
  using Batch = SweepBatch;
  struct State : PlaceTicket<D>::State {
    bool here, begins;
  };
  WARPHASH_FN static bool start(const TicketTable& t, const SweepBatch& b, u64 i, State& s) {
    const u32 target = Waiting::target(b, i);
    s.begins = target == kNotBegun;
    s.here = s.begins || Window::of(b).has(target);
    if (!s.here) return false;
    PlaceTicket<D>::start(t, b, i, s);
    if (s.begins) return true;
    s.walk = D::Walk::resume(target, 0);
    return false;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const SweepBatch& b, State& s) {
    return PlaceTicket<D>::step(t, b, s);
  }
  WARPHASH_FN static void finish(const TicketTable& t, const SweepBatch& b, u64 i, State& s, bool live, Tally& tally) {
    if (!live || !s.here) return;
    if (s.begins) {
      PlaceTicket<D>::account(b, s, tally);
      if (!s.booked) return Waiting::end(b, i);
      Booking<D>::inform(t, s);
      return Waiting::wait(b, i, s.walk.slot, 0);
    }
    Booking<D>::put(t, s);
    Waiting::end(b, i);
  }
};

}  // namespace warphash

#undef WARPHASH_ENTRIES
#define WARPHASH_SWEEP_ENTRIES(...)                                                        \
  WARPHASH_ENTRY(find, warphash::SearchesWindows<warphash::FindTicket<__VA_ARGS__>>)       \
  WARPHASH_ENTRY(settle, warphash::ListsWindows<warphash::SettleTicket<__VA_ARGS__>>)      \
  WARPHASH_ENTRY(combine, warphash::SearchesWindows<warphash::CombineTicket<__VA_ARGS__>>) \
  WARPHASH_ENTRY(erase, warphash::SearchesWindows<warphash::EraseTicket<__VA_ARGS__>>)     \
  WARPHASH_ENTRY(place, warphash::PlaceInWindows<__VA_ARGS__>)                             \
  WARPHASH_ENTRY(sample, warphash::SampleTickets<__VA_ARGS__>)

#define WARPHASH_ENTRIES(D, WORD, VALUE, N) WARPHASH_SWEEP_ENTRIES(WARPHASH_DESIGN(D, WORD, VALUE, N))
