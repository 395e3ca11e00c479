// The entry points of design D on a CPU, over slots of WORD (u32 or u64), VALUED or not, N to a bucket.
#pragma once
#include "buckets/cpu/build.cuh"
#include "buckets/cpu/find.cuh"
#include "buckets/cpu/place.cuh"
#include "buckets/cpu/settle.cuh"
#include "buckets/entries.cuh"

#define WARPHASH_BUILD_ENTRIES(...)                                  \
  WARPHASH_ENTRY(scatter_parts, warphash::ScatterParts<__VA_ARGS__>) \
  WARPHASH_ENTRY(scatter_slots, warphash::ScatterSlots<__VA_ARGS__>) \
  WARPHASH_ENTRY(build_parts, warphash::BuildOfParts<__VA_ARGS__>)   \
  WARPHASH_ENTRY(flag_added, warphash::FlagAdded<__VA_ARGS__>)

#define WARPHASH_ENTRIES(D, WORD, VALUED, N)                   \
  WARPHASH_BUCKET_ENTRIES(WARPHASH_DESIGN(D, WORD, VALUED, N)) \
  WARPHASH_BUILD_ENTRIES(WARPHASH_DESIGN(D, WORD, VALUED, N))
