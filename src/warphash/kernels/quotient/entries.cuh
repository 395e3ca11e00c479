// The entry points of a quotient design, by the names that storage/quotient/array.py launches. COUNT and SCATTER
// bring elements to ranges on the platform, LINES is how it reads lines, and BLOCKS is the schedule of the kernels
// that have a block for each range.
#pragma once
#include "quotient/apply.cuh"
#include "quotient/build.cuh"
#include "quotient/find.cuh"

// Design D over slots of WORD (u32 or u64) with a value of VALUE bytes (0, 4 or 8), N to a bucket.
#define WARPHASH_DESIGN(D, WORD, VALUE, N) warphash::D<warphash::QuotientSlots<WORD, VALUE, N>>

#define WARPHASH_QUOTIENT_ENTRIES(COUNT, SCATTER, BLOCKS, LINES, ...)       \
  WARPHASH_ENTRY(find, warphash::FindInLines<__VA_ARGS__, LINES>)           \
  WARPHASH_ENTRY(probe_counts, warphash::LineCounts<__VA_ARGS__, LINES>)    \
  WARPHASH_ENTRY(count, COUNT<__VA_ARGS__>)                                 \
  WARPHASH_ENTRY(reserve, warphash::ReserveForRanges<__VA_ARGS__>)          \
  WARPHASH_ENTRY(scatter, SCATTER<__VA_ARGS__>)                             \
  WARPHASH_ENTRY(apply, BLOCKS<warphash::ApplyToRange<__VA_ARGS__, LINES>>) \
  WARPHASH_ENTRY(build, BLOCKS<warphash::BuildRange<__VA_ARGS__, LINES>>)   \
  WARPHASH_ENTRY(scan, warphash::ScanLines<__VA_ARGS__>)                    \
  WARPHASH_ENTRY(audit, warphash::AuditLines<__VA_ARGS__>)
