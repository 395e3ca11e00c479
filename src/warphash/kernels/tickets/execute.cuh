// A batch of finds, inserts, assigns and erases that run beside each other on a table with a ticket board.
// Source: Stadium Hashing, section III-B, Support for mixed operation concurrency.
//
// Layout: a third board, of one access bit for each slot (bits 0 to 31 of a word are slots 32 i to 32 i + 31): 1 if the
// slot is booked and its pair is there. `open_access` writes it from the ticket board before the first mixed batch;
// mixed batches keep it right.
// The paper has the bit in the ticket, which then has an info bit less. Ours lies apart, so a table that runs no mixed
// batch has no such board, and all its info bits.
//
// What a slot goes through in one launch. It is never used twice:
//   unused    free, not emptied                  an insert may book it
//   under way booked, access bit 0               its pair is being written
//   live      booked, access bit 1
//   leaving   booked, access bit 0               its key is erased
//   emptied   free, marked as emptied            searches go on behind it
//
// Protocol. Each step looks at one ticket. Another key's info bits: go on. Then
//   unused    find, erase: absent. insert, assign: a compare-and-swap books the ticket with its info bits in one; then
//             the pair is written, and the access bit is set by a fetch_or with .release. A booking that fails looks at
//             the ticket again. Between the look and the booking, others may have booked the slot and emptied it, which
//             leaves the ticket as it was. So whoever has booked a slot fences (.acquire), reads its mark, and gives a
//             marked one back.
//   booked    read the access bit, then a fence (.acquire).
//             1: read the key. Another: go on. The same: find reads the value, assign stores it, insert is done; erase
//             clears the access bit by a fetch_and, which of several erases one does, then marks the slot as emptied,
//             then gives the ticket back with .release.
//             A value that is no word is read and stored under a sequence lock (value_version.cuh). Where the lock
//             has find or assign try again, the next step looks at the same ticket.
//             0: insert and assign look again, until the pair is there or the slot is emptied. find and erase go on, as
//             if the key were absent, or look again, too, as TicketTable::waits says: the two answers of the paper.
//   emptied   the load of the ticket, a fence (.acquire), the load of the mark: go on.
// All other accesses to tickets, bits and pairs are relaxed.
//
// Why keys of any width need no lock. A key is written once in a launch: before the access bit of its slot is set, and
// no slot is used twice. So whoever has seen the access bit, and then fenced, reads the whole key. Only a value changes
// under a reader, by an assign.
//
// Consistency: linearizable. At most one slot of a key is under way or live at a time. Of two inserts of a key, both
// take the first unused slot of its walk. All slots before it were seen to be another key's, or emptied, and remain so;
// all behind it have never had the key, as a search stops at an unused slot. So the moments are:
//   insert   added: when the access bit was set. Present: when it was read as 1.
//   assign   as an insert; a value stored to a key that was there counts at that moment, or, if the key was erased in
//            between, just before the erase. The same holds for a find that reads a value. value_version.cuh says at
//            which moment a value of several words is stored, and read.
//   erase    when it cleared the access bit. In vain, where another did: right behind that one.
//   absent   when the last of the slots was passed in which the key was on its way in or out, or else at the end.
//
// Why the info bits are booked with the ticket, and not after it as in `place`: an insert must not pass by a ticket
// that is on its way to its own key. Why nobody waits for ever: a booking and its writes are one step of a lane, which
// waits for nobody. So is the write of a value.
// Why TicketTable::waits does not say what a find does about a value that is being overwritten: the key is there before
// and after, so "absent" would be the answer of no order. The find tries again.
// What is left undone: an insert or assign that finds no unused slot is kUnplaced. Slots that were emptied become free
// for it when the table is rebuilt (storage/tickets/store.py).
#pragma once
#include "tickets/bulk.cuh"
#include "tickets/value_version.cuh"

namespace warphash {

struct AccessBit {
  u32* word;
  u32 bit;

  WARPHASH_FN static AccessBit of(const TicketTable& t, u32 slot) {
    return {reinterpret_cast<u32*>(t.access) + (slot >> kBoardWordShift), 1u << (slot & 31u)};
  }
  WARPHASH_FN bool is_set() const { return load_relaxed(word) & bit; }
  WARPHASH_FN void set() const { fetch_or_release(word, bit); }
  // True if it was set until now.
  WARPHASH_FN bool clear() const { return fetch_and(word, ~bit) & bit; }
};

// The elements are the words of the board of access bits.
struct OpenAccess : Straight<TicketTable, TicketBatch> {
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch&, u64 i, State&) {
    u32 bits = 0;
    for (u32 j = 0; j < 32; ++j) {
      const u64 slot = i << kBoardWordShift | j;
      if (slot >= t.buckets) break;
      const u32 ticket = Ticket::of(t, static_cast<u32>(slot)).template load<true>(t);
      bits |= static_cast<u32>(!Ticket::is_free(ticket)) << j;
    }
    store_relaxed(reinterpret_cast<u32*>(t.access) + i, bits);
    return false;
  }
};

template <HasWalk D>
struct ExecuteTickets : Searching {
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kErases = true;
  static constexpr bool kHasRow = S::kValueBytes == kRow;  // which has no bytes in a set of wide keys
  struct State {
    Word key;
    typename D::Walk walk;
    u32 info;
    u32 element;
    typename S::Value value;  // that a find found, or that others write; of a row, the address of what they write
    u8 operation;
    u8 flag;
    WARPHASH_FN bool writes() const { return operation == kInsertKey || operation == kAssignKey; }
  };
  WARPHASH_FN static bool start(const TicketTable& t, const TicketBatch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    s.key = key_at<S>(b, s.element);
    s.walk = D::Walk::start(t, s.key);
    s.info = Ticket::info_of(t, D::info(t, s.key));
    s.operation = load_once(pointer<const u8>(b.operations) + s.element);
    s.flag = 0;
    if constexpr (S::kHasValue)
      s.value = s.writes() && b.values ? load_once(pointer<const typename S::Value>(b.values) + s.element) : 0;
    else if constexpr (kHasRow)
      s.value = s.writes() && b.values ? b.values + s.element * t.value_bytes : 0;
    return s.operation <= kEraseKey;
  }
  WARPHASH_FN static bool step(const TicketTable& t, const TicketBatch& b, State& s) {
    const u32 slot = s.walk.slot;
    const Ticket place = Ticket::of(t, slot);
    const u32 ticket = place.template load<false>(t);
    if (Ticket::is_free(ticket)) {
      if (!was_never_used<false>(t, slot)) return go_on(t, s);
      return !s.writes() || insert(t, s, place);
    }
    if (Ticket::info_in(ticket) != s.info) return go_on(t, s);
    const AccessBit access = AccessBit::of(t, slot);
    if (!access.is_set()) return !s.writes() && !t.waits && go_on(t, s);
    [[maybe_unused]] u64 version = 0;
    if constexpr (kHasRow)
      if (reads_row(t, b, s)) version = ValueVersion::of(t, slot).load();
    acquire_fence();
    u8* const pair = S::at(t, slot);
    if (S::key_of(pair) != s.key) return go_on(t, s);
    if (s.operation == kFindKey) {
      if constexpr (S::kHasValue)
        s.value = load_relaxed(reinterpret_cast<const typename S::Value*>(S::value_of(pair)));
      else if constexpr (kHasRow)
        if (reads_row(t, b, s) && !read_row_of(t, b, s, pair, version)) return false;
      s.flag = 1;
    } else if (s.operation == kAssignKey) {
      if constexpr (S::kHasValue)
        store_relaxed(reinterpret_cast<typename S::Value*>(S::value_of(pair)), s.value);
      else if constexpr (kHasRow)
        return !t.value_bytes || ValueVersion::of(t, slot).write(S::value_of(pair), row_of(s), t.value_bytes);
    } else if (s.operation == kEraseKey && access.clear()) {
      EmptiedBit::of(t, slot).set();
      place.give_back(t);
      s.flag = kChanged;
    }
    return true;
  }
  WARPHASH_FN static const void* next(const TicketTable& t, const State& s) { return Ticket::of(t, s.walk.slot).word; }
  WARPHASH_FN static void finish(const TicketTable& t, const TicketBatch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.probes += s.walk.tried;
    tally.changed += s.flag == kChanged && s.writes();
    tally.erased += s.flag == kChanged && s.operation == kEraseKey;
    if (s.flag == kUnplaced) atomic_add(&report_of(b)->unplaced, 1ull);
    const bool found = s.operation == kFindKey && s.flag;
    if (b.out_values && !(kHasRow && found)) {  // a row that was found is there already
      const auto absent = static_cast<typename S::Value>(b.default_value);
      S::hand_out(b.out_values, s.element, found ? s.value : absent, S::value_bytes(t));
    }
    set_flag(b, s.element, s.flag);
  }

 private:
  // Rows on their way: those that writes bring, null for zeros, and those that finds answer with.
  WARPHASH_FN static const u8* row_of(const State& s) { return reinterpret_cast<const u8*>(s.value); }
  WARPHASH_FN static bool reads_row(const TicketTable& t, const TicketBatch& b, const State& s) {
    return s.operation == kFindKey && t.value_bytes && b.out_values;
  }
  // False: the value changed meanwhile.
  WARPHASH_FN static bool read_row_of(const TicketTable& t, const TicketBatch& b, const State& s, u8* pair,
                                      u64 version) {
    u8* const to = pointer<u8>(b.out_values) + s.element * t.value_bytes;
    return ValueVersion::of(t, s.walk.slot).read(version, to, S::value_of(pair), t.value_bytes);
  }
  WARPHASH_FN static bool go_on(const TicketTable& t, State& s) {
    if (s.walk.advance(t, s.key)) return false;
    if (s.writes()) s.flag = kUnplaced;
    return true;
  }
  WARPHASH_FN static bool insert(const TicketTable& t, State& s, const Ticket& place) {
    if (!place.book_with(t, s.info)) return false;
    if (!was_never_used<false>(t, s.walk.slot)) {  // it was booked and emptied since it was seen
      place.give_back(t);
      return go_on(t, s);
    }
    u8* const pair = S::at(t, s.walk.slot);
    *reinterpret_cast<Word*>(pair) = s.key;
    if constexpr (S::kHasValue)
      *reinterpret_cast<typename S::Value*>(S::value_of(pair)) = s.value;
    else if constexpr (kHasRow)
      write_row(S::value_of(pair), row_of(s), t.value_bytes);
    AccessBit::of(t, s.walk.slot).set();
    s.flag = kChanged;
    return true;
  }
};

}  // namespace warphash
