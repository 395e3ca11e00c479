// The ticket board: a few bits for each slot of a table, which mostly make a look at the slot unnecessary.
// Source: Stadium Hashing, section III.
//
// Layout of the board: words of 32 bits, each with 32 / w tickets of w bits, w = 1, 2, 4 or 8. Tickets fill a word from
// its lowest bits, so slot s has ticket s mod (32 / w) of word s / (32 / w). A ticket (bits, low to high):
//   [ availability 1 | info w - 1 ]
//   availability   1: the slot is free; 0: it is booked
//   info           bits of a hash of the key in the slot; all ones while the slot is free
// Tickets behind the last slot stay free.
//
// The board of emptied slots, a second one, has one bit for each slot: 1 if a key was erased there since the table was
// made or cleared. It is there from the first erase on. A free slot that is not marked there was never used.
//
// Protocol. w = 4 in the drawings. Memory order: relaxed, but for the two accesses that are named.
//   book        [ ???0 ] -> [ ???0 ], or [ 1111 ] -> [ 1110 ]
//               fetch_and of the availability bit. 1 in the old word is the permit (Figure 7): one of all who try gets
//               it.
//   inform      [ 1110 ] -> [ iii0 ]
//               fetch_and of the info bits (Figure 8), by the one who booked the slot. Until then the info bits are
//               ones, so nobody may look at tickets while others book.
//   book with   [ 1111 ] -> [ iii0 ]
//               compare-and-swap of the word: books and informs in one, where others look (tickets/execute.cuh).
//   give back   [ iii0 ] -> [ 1111 ]
//               sets the slot's bit among the emptied, then all bits of the ticket by a fetch_or with .release. 0 in
//               the old availability bit: this caller, and no other, emptied the slot.
//   look        a load. Beside others who give back, a fence (.acquire) stands between the load of a free ticket and
//               the load of its bit among the emptied: who sees the ticket given back sees the bit. Without the fence,
//               a search could take an emptied slot for one that was never used, and stop.
// The heads of tickets/bulk.cuh, insert.cuh and execute.cuh say which of these run beside each other. The end of a
// kernel orders the rest.
//
// Why a second board. The paper sets all bits of a ticket when a key is erased, and a search then may no longer stop at
// a free ticket (section III-B, Deletion): one erase, and each absent key costs a probe of all slots. An emptied slot
// could have a ticket of its own, free with info bits of zeros; but tickets of one bit have none. The second board
// serves all widths, leaves the ticket as the paper has it, and costs nothing in a table that erases nothing.
#pragma once
#include "platform/platform.cuh"
#include "tickets/abi.cuh"

namespace warphash {

constexpr u32 kBoardWordShift = 5;  // logarithm of the bits of a word

// A ticket on the board of a table.
struct Ticket {
  u32* word;
  u32 position;  // of the availability bit

  WARPHASH_FN static Ticket at(u64 board, u64 ticket_shift, u64 slot) {
    const u64 bit = slot << ticket_shift;
    return {reinterpret_cast<u32*>(board) + (bit >> kBoardWordShift), static_cast<u32>(bit) & 31u};
  }
  WARPHASH_FN static Ticket of(const TicketTable& t, u32 slot) {
    WARPHASH_ASSERT(slot < t.buckets);
    return at(t.board, t.ticket_shift, slot);
  }
  WARPHASH_FN u32 permit() const { return 1u << position; }

  // The bits of the ticket.
  template <bool kFrozen>
  WARPHASH_FN u32 load(const TicketTable& t) const {
    return load_slot<kFrozen>(word) >> position & ((2u << info_bits(t)) - 1);
  }
  WARPHASH_FN static bool is_free(u32 ticket) { return ticket & 1u; }
  WARPHASH_FN static u32 info_in(u32 ticket) { return ticket >> 1; }
  WARPHASH_FN static u32 info_bits(const TicketTable& t) { return (1u << t.ticket_shift) - 1; }
  // As many bits of a hash as a ticket has room for.
  WARPHASH_FN static u32 info_of(const TicketTable& t, u32 hash) { return hash & ((1u << info_bits(t)) - 1); }

  // True if the slot was free, and is the caller's now.
  WARPHASH_FN bool book() const { return fetch_and(word, ~permit()) & permit(); }
  WARPHASH_FN void inform(const TicketTable& t, u32 info) const {
    const u32 mask = (1u << info_bits(t)) - 1;
    if (mask) fetch_and(word, ~((~info & mask) << 1 << position));
  }
  // The same, with the info bits in one; false also if another ticket of the word has changed.
  WARPHASH_FN bool book_with(const TicketTable& t, u32 info) const {
    const u32 all = (2u << info_bits(t)) - 1, seen = load_relaxed(word);
    const u32 booked = (seen & ~(all << position)) | info << 1 << position;
    return seen & permit() && compare_exchange_word(word, seen, booked) == seen;
  }
  // True if the slot was booked until now.
  WARPHASH_FN bool give_back(const TicketTable& t) const {
    return !(fetch_or_release(word, ((2u << info_bits(t)) - 1) << position) & permit());
  }
};

// The bit of a slot among the emptied.
struct EmptiedBit {
  u32* word;
  u32 bit;

  WARPHASH_FN static EmptiedBit of(const TicketTable& t, u32 slot) {
    return {reinterpret_cast<u32*>(t.emptied) + (slot >> kBoardWordShift), 1u << (slot & 31u)};
  }
  WARPHASH_FN void set() const { fetch_or(word, bit); }
  WARPHASH_FN bool is_set() const { return load_relaxed(word) & bit; }
};

// Whether a free slot was never used: a search that comes here may stop. `kFrozen`: nobody gives tickets back
// meanwhile.
template <bool kFrozen>
WARPHASH_FN bool was_never_used(const TicketTable& t, u32 slot) {
  if (!t.emptied) return true;
  if (!kFrozen) acquire_fence();
  return !EmptiedBit::of(t, slot).is_set();
}

}  // namespace warphash
