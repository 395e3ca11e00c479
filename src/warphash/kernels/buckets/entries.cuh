// The entry points of a design with a choice of buckets, by the names that storage/buckets/store.py launches. The argument is
// the design over its slots. What an entry point becomes, a kernel or an element of a list, is the platform's WARPHASH_ENTRY.
#pragma once
#include "buckets/columns.cuh"
#include "buckets/insert.cuh"

// Design D over slots of WORD (u32 or u64), VALUED or not, N to a bucket.
#define WARPHASH_DESIGN(D, WORD, VALUED, N) warphash::TableOf<warphash::D, WORD, VALUED, N>

#define WARPHASH_BUCKET_ENTRIES(...)                                               \
  WARPHASH_ENTRY(find, warphash::Find<__VA_ARGS__>)                                \
  WARPHASH_ENTRY(probe_counts, warphash::ProbeCounts<warphash::Find<__VA_ARGS__>>) \
  WARPHASH_ENTRY(place, warphash::Place<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(place_next, warphash::PlaceNext<__VA_ARGS__>)                     \
  WARPHASH_ENTRY(erase, warphash::Erase<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(audit, warphash::Audit<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(settle, warphash::Settle<__VA_ARGS__>)                            \
  WARPHASH_ENTRY(claim, warphash::Claim<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(combine, warphash::Combine<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(scan, warphash::Scan<__VA_ARGS__>)                                \
  WARPHASH_ENTRY(migrate, warphash::Migrate<__VA_ARGS__>)
