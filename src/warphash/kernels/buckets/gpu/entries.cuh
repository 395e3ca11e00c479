// The entry points of design D on a GPU, over slots of WORD (u32 or u64), VALUED or not, N to a bucket.
#pragma once
#include "buckets/entries.cuh"
#include "buckets/gpu/one_block.cuh"

#define WARPHASH_BLOCK_ENTRIES(...)                                       \
  WARPHASH_ENTRY(settle_new, warphash::SettleNew<__VA_ARGS__>)            \
  WARPHASH_BLOCK_ENTRY(update_block, warphash::update_block<__VA_ARGS__>) \
  WARPHASH_BLOCK_ENTRY(erase_block, warphash::erase_block<__VA_ARGS__>)

#define WARPHASH_ENTRIES(D, WORD, VALUED, N)                   \
  WARPHASH_BUCKET_ENTRIES(WARPHASH_DESIGN(D, WORD, VALUED, N)) \
  WARPHASH_BLOCK_ENTRIES(WARPHASH_DESIGN(D, WORD, VALUED, N))
