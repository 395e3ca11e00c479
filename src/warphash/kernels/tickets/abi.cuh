// What kernels on a table with a ticket board are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// A table with a ticket board.
// `buckets` are the slots, a prime number; there are no reserved buckets.
struct TicketTable : Table {
  u64 board;          // address of the ticket board (tickets/ticket_board.cuh)
  u64 emptied;        // address of a bit for each slot: 1 if a key was erased there; 0 if none ever was
  u64 access;         // execute: address of a bit for each slot: 1 if the pair of a booked slot is there
  u64 ticket_shift;   // logarithm of the bits of a ticket
  u64 of_family;      // 1: the hash functions are those of `family`, and not the paper's
  u64 waits;          // execute: 1: a find, or an erase, that meets a pair on its way into its slot waits for it
  u64 value_bytes;    // of a value where it is no word, a multiple of 4
  u64 keeps_emptied;  // 1: an emptied slot is not booked again, as a file may still need what it holds
  u64 versions;       // execute: address of the sequence locks of values that are no words (tickets/value_version.cuh)
  u64 version_mask;   // one less than their number, a power of two
};

// An operation on a table with a ticket board.
struct TicketBatch : InsertBatch {
  u64 operations;    // execute: Operation per element, u8
  u64 source_slots;  // relocate: address of the slots of another table
  u64 source_board;  // and of its ticket board
};

// A batch that goes through the slots window by window (tickets/sweep.cuh).
struct SweepBatch : TicketBatch {
  u64 targets;       // address of a u32 for each element: the slot that it waits for
  u64 tried;         // address of a u32 for each element: the tickets that it has seen
  u64 waiting;       // address of the number of elements that wait for slots before the window
  u64 window_first;  // the first slot of the window
  u64 window_slots;  // its slots
  u64 sampled;       // sample: how many elements the launch stands for
};

// What a design with a ticket board takes.
struct OverTickets {
  using Table = TicketTable;
  using Batch = TicketBatch;
};

}  // namespace warphash
