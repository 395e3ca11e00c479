// The entry points of a design over subtables, by the names that storage/subtables/store.py launches. SETTLE and PLACE
// are the tasks that put keys.
#pragma once
#include "subtables/resize.cuh"

#define WARPHASH_PAIR_ENTRIES(SETTLE, PLACE, ...)             \
  WARPHASH_ENTRY(find, warphash::FindPair<__VA_ARGS__>)       \
  WARPHASH_ENTRY(settle, SETTLE<__VA_ARGS__>)                 \
  WARPHASH_ENTRY(place, PLACE<__VA_ARGS__>)                   \
  WARPHASH_ENTRY(combine, warphash::CombinePair<__VA_ARGS__>) \
  WARPHASH_ENTRY(scan, warphash::ScanSubtable<__VA_ARGS__>)   \
  WARPHASH_ENTRY(enlarge, warphash::Enlarge<__VA_ARGS__>)     \
  WARPHASH_ENTRY(hand_over, warphash::HandOver)               \
  WARPHASH_ENTRY(halve, warphash::Halve<__VA_ARGS__>)

// Those that touch no value. All widths of a value share them: they are compiled once ahead of time.
#define WARPHASH_KEY_ENTRIES(...)                                                      \
  WARPHASH_ENTRY(probe_counts, warphash::ProbeCounts<warphash::FindPair<__VA_ARGS__>>) \
  WARPHASH_ENTRY(guest_counts, warphash::FilterCounts<__VA_ARGS__>)                    \
  WARPHASH_ENTRY(claim, warphash::ClaimLeftover<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(erase, warphash::ErasePair<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(audit, warphash::AuditSubtable<__VA_ARGS__>)

// Design D over lines of N keys of WORD, with values of VALUE bytes, or kRow.
#define WARPHASH_DESIGN(D, WORD, VALUE, N) warphash::D<warphash::Lines<WORD, VALUE>>

#define WARPHASH_ENTRIES(D, WORD, VALUE, N)                                                            \
  WARPHASH_PAIR_ENTRIES(warphash::SettlePair, warphash::PlacePair, WARPHASH_DESIGN(D, WORD, VALUE, N)) \
  WARPHASH_KEY_ENTRIES(WARPHASH_DESIGN(D, WORD, 0, N))
