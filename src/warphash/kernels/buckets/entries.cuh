// The entry points of a design, by the names that storage/buckets/store.py launches.
#pragma once
#include "buckets/gpu/one_block.cuh"
#include "chains/execute.cuh"
#include "chains/lists.cuh"
#include "chains/multimap.cuh"
#include "core/insert.cuh"

// The entry points of design D over slots of WORD (u32 or u64), VALUED or not, N to a bucket. What one becomes, a kernel
// or an element of a list, is the platform's WARPHASH_ENTRY.
#define WARPHASH_ENTRIES(D, WORD, VALUED, N)                                                                           \
  WARPHASH_ENTRY(find, warphash::Find<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                                \
  WARPHASH_ENTRY(probe_counts, warphash::ProbeCounts<warphash::Find<warphash::TableOf<warphash::D, WORD, VALUED, N>>>) \
  WARPHASH_ENTRY(place, warphash::Place<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                              \
  WARPHASH_ENTRY(erase, warphash::Erase<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                              \
  WARPHASH_ENTRY(audit, warphash::Audit<warphash::TableOf<warphash::D, WORD, VALUED, N>>)

// Those of a design with a choice of buckets.
#define WARPHASH_CHOICE_ENTRIES(D, WORD, VALUED, N)                                                           \
  WARPHASH_ENTRIES(D, WORD, VALUED, N)                                                                        \
  WARPHASH_ENTRY(settle, warphash::Settle<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                   \
  WARPHASH_ENTRY(claim, warphash::Claim<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                     \
  WARPHASH_ENTRY(combine, warphash::Combine<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                 \
  WARPHASH_ENTRY(scan, warphash::Scan<warphash::TableOf<warphash::D, WORD, VALUED, N>>)                       \
  WARPHASH_BLOCK_ENTRY(update_block, warphash::update_block<warphash::TableOf<warphash::D, WORD, VALUED, N>>) \
  WARPHASH_BLOCK_ENTRY(erase_block, warphash::erase_block<warphash::TableOf<warphash::D, WORD, VALUED, N>>)   \
  WARPHASH_ENTRY(migrate, warphash::Migrate<warphash::TableOf<warphash::D, WORD, VALUED, N>>)

// Those of a design whose buckets are lists.
#define WARPHASH_LIST_ENTRIES(D, WORD, VALUED, N)                                              \
  WARPHASH_ENTRIES(D, WORD, VALUED, N)                                                         \
  WARPHASH_ENTRY(execute, warphash::Execute<warphash::TableOf<warphash::D, WORD, VALUED, N>>)  \
  WARPHASH_ENTRY(scan, warphash::ScanLists<warphash::TableOf<warphash::D, WORD, VALUED, N>>)   \
  WARPHASH_ENTRY(flush, warphash::Flush<warphash::TableOf<warphash::D, WORD, VALUED, N>>)      \
  WARPHASH_ENTRY(relist, warphash::Relist<warphash::TableOf<warphash::D, WORD, VALUED, N>>)    \
  WARPHASH_ENTRY(append, warphash::Append<warphash::TableOf<warphash::D, WORD, VALUED, N>>)    \
  WARPHASH_ENTRY(count, warphash::Count<warphash::TableOf<warphash::D, WORD, VALUED, N>>)      \
  WARPHASH_ENTRY(find_all, warphash::FindAll<warphash::TableOf<warphash::D, WORD, VALUED, N>>) \
  WARPHASH_ENTRY(retract, warphash::Retract<warphash::TableOf<warphash::D, WORD, VALUED, N>>)  \
  WARPHASH_ENTRY(erase_all, warphash::EraseAll<warphash::TableOf<warphash::D, WORD, VALUED, N>>)
