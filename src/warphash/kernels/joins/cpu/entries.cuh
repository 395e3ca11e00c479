// The kernels of joins on a CPU.
#pragma once
#include "joins/cpu/filter.cuh"
#include "joins/cpu/pairs.cuh"
#include "joins/cpu/words.cuh"

#undef WARPHASH_PLAIN_ENTRIES  // of headers that are included
#define WARPHASH_PLAIN_ENTRIES                                                                                        \
  WARPHASH_ENTRY(add_to_filter,                                                                                       \
                 warphash::OverFilters<warphash::AddToFilter<warphash::u32>, warphash::AddToFilter<warphash::u64>>)   \
  WARPHASH_ENTRY(list_likely,                                                                                         \
                 warphash::OverFilters<warphash::ListLikely<warphash::u32>, warphash::ListLikely<warphash::u64>>)     \
  WARPHASH_ENTRY(gather_likely,                                                                                       \
                 warphash::OverFilters<warphash::GatherLikely<warphash::u32>, warphash::GatherLikely<warphash::u64>>) \
  WARPHASH_ENTRY(fold_words, warphash::OverFilters<warphash::FoldWords, warphash::FoldWords>)                         \
  WARPHASH_ENTRY(count_pairs, warphash::OverRowLists<warphash::CountPairs>)                                           \
  WARPHASH_ENTRY(emit_pairs, warphash::OverRowLists<warphash::EmitPairs>)
