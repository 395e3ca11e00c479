// The entry points of a two-level design, by the names that storage/two_level/array.py launches. BLOCKS is the schedule
// of the kernels that have a block for each bucket.
#pragma once
#include "two_level/place.cuh"

// Design D over slots of WORD (u32 or u64), VALUED or not.
#define WARPHASH_DESIGN(D, WORD, VALUED, N) warphash::D<warphash::Slots<WORD, VALUED, 1>>

#define WARPHASH_TWO_LEVEL_ENTRIES(BLOCKS, ...)                         \
  WARPHASH_ENTRY(lay_out, warphash::LayOut<__VA_ARGS__>)                \
  WARPHASH_ENTRY(find, warphash::FindInRange<__VA_ARGS__>)              \
  WARPHASH_ENTRY(probe_counts, warphash::RangeProbeCounts<__VA_ARGS__>) \
  WARPHASH_ENTRY(settle, warphash::SettleInRange<__VA_ARGS__>)          \
  WARPHASH_ENTRY(claim, warphash::Claim<__VA_ARGS__>)                   \
  WARPHASH_ENTRY(link, warphash::LinkToBucket<__VA_ARGS__>)             \
  WARPHASH_ENTRY(place, BLOCKS<warphash::PlaceInBuckets<__VA_ARGS__>>)  \
  WARPHASH_ENTRY(combine, warphash::CombineInRange<__VA_ARGS__>)        \
  WARPHASH_ENTRY(scatter, warphash::ScatterToRanges<__VA_ARGS__>)       \
  WARPHASH_ENTRY(scatter_slots, warphash::ScatterSlots<__VA_ARGS__>)    \
  WARPHASH_ENTRY(place_all, BLOCKS<warphash::PlaceAll<__VA_ARGS__>>)    \
  WARPHASH_ENTRY(move, BLOCKS<warphash::MoveBuckets<__VA_ARGS__>>)      \
  WARPHASH_ENTRY(erase, warphash::EraseInRange<__VA_ARGS__>)            \
  WARPHASH_ENTRY(scan, warphash::Scan<__VA_ARGS__>)                     \
  WARPHASH_ENTRY(audit, warphash::AuditRanges<__VA_ARGS__>)
