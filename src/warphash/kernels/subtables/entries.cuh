// The entry points of a design over subtables, by the names that storage/subtables/store.py launches.
#pragma once
#include "subtables/resize.cuh"

#define WARPHASH_SUBTABLE_ENTRIES(...)                                                 \
  WARPHASH_ENTRY(find, warphash::FindPair<__VA_ARGS__>)                                \
  WARPHASH_ENTRY(probe_counts, warphash::ProbeCounts<warphash::FindPair<__VA_ARGS__>>) \
  WARPHASH_ENTRY(guest_counts, warphash::GuestCounts<__VA_ARGS__>)                     \
  WARPHASH_ENTRY(settle, warphash::SettlePair<__VA_ARGS__>)                            \
  WARPHASH_ENTRY(claim, warphash::ClaimLeftover<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(place, warphash::PlacePair<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(combine, warphash::CombinePair<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(erase, warphash::ErasePair<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(scan, warphash::ScanSubtable<__VA_ARGS__>)                            \
  WARPHASH_ENTRY(audit, warphash::AuditSubtable<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(enlarge, warphash::Enlarge<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(hand_over, warphash::HandOver)                                        \
  WARPHASH_ENTRY(halve, warphash::Halve<__VA_ARGS__>)

// Those of design D over lines of keys of WORD, with values of VALUE bytes, or kRow.
#define WARPHASH_ENTRIES(D, WORD, VALUE, N) WARPHASH_SUBTABLE_ENTRIES(warphash::D<warphash::Lines<WORD, VALUE>>)
