// The entry points of a design with a ticket board, by the names that storage/tickets/array.py launches.
#pragma once
#include "tickets/execute.cuh"
#include "tickets/insert.cuh"

namespace warphash {

// The schedule of tasks that search, on a GPU: a lane for each element.
template <class Task>
using OneByOne = Task;

}  // namespace warphash

// Design D over slots of a key of WORD, with values of VALUE bytes, or kRow. There are no buckets.
#define WARPHASH_DESIGN(D, WORD, VALUE, N) warphash::D<warphash::Pairs<WORD, VALUE>>

#define WARPHASH_TICKET_ENTRIES(LANES, ...)                                \
  WARPHASH_ENTRY(find, LANES<warphash::FindTicket<__VA_ARGS__>>)           \
  WARPHASH_ENTRY(settle, LANES<warphash::SettleTicket<__VA_ARGS__>>)       \
  WARPHASH_ENTRY(place, LANES<warphash::PlaceTicket<__VA_ARGS__>>)         \
  WARPHASH_ENTRY(combine, LANES<warphash::CombineTicket<__VA_ARGS__>>)     \
  WARPHASH_ENTRY(erase, LANES<warphash::EraseTicket<__VA_ARGS__>>)         \
  WARPHASH_ENTRY(relocate, LANES<warphash::RelocateTicket<__VA_ARGS__>>)   \
  WARPHASH_ENTRY(probe_counts, warphash::SearchCounts<__VA_ARGS__, false>) \
  WARPHASH_ENTRY(read_counts, warphash::SearchCounts<__VA_ARGS__, true>)   \
  WARPHASH_ENTRY(locate, warphash::LocateTicket<__VA_ARGS__>)              \
  WARPHASH_ENTRY(claim, warphash::Claim<__VA_ARGS__>)                      \
  WARPHASH_ENTRY(scan, warphash::ScanTickets<__VA_ARGS__>)                 \
  WARPHASH_ENTRY(audit, warphash::AuditTickets<__VA_ARGS__>)               \
  WARPHASH_ENTRY(execute, warphash::ExecuteTickets<__VA_ARGS__>)           \
  WARPHASH_ENTRY(open_access, warphash::OpenAccess)

#define WARPHASH_ENTRIES(D, WORD, VALUE, N) \
  WARPHASH_TICKET_ENTRIES(warphash::OneByOne, WARPHASH_DESIGN(D, WORD, VALUE, N))
