// The entry points of a design whose buckets are lists, by the names that storage/chains/store.py launches.
#pragma once
#include "chains/lists.cuh"
#include "chains/multimap.cuh"
#include "chains/reuse.cuh"

#define WARPHASH_LIST_ENTRIES(...)                                                 \
  WARPHASH_ENTRY(find, warphash::Find<__VA_ARGS__>)                                \
  WARPHASH_ENTRY(probe_counts, warphash::ProbeCounts<warphash::Find<__VA_ARGS__>>) \
  WARPHASH_ENTRY(place, warphash::PlaceInList<__VA_ARGS__>)                        \
  WARPHASH_ENTRY(erase, warphash::Erase<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(audit, warphash::Audit<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(execute, warphash::Execute<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(execute_pairs, warphash::ExecutePairs<__VA_ARGS__>)               \
  WARPHASH_ENTRY(scan, warphash::ScanLists<__VA_ARGS__>)                           \
  WARPHASH_ENTRY(flush, warphash::Flush<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(relist, warphash::Relist<__VA_ARGS__>)                            \
  WARPHASH_ENTRY(append, warphash::Append<__VA_ARGS__>)                            \
  WARPHASH_ENTRY(append_runs, warphash::AppendRuns<__VA_ARGS__>)                   \
  WARPHASH_ENTRY(append_reusing, warphash::AppendReusing<__VA_ARGS__>)             \
  WARPHASH_ENTRY(execute_reusing, warphash::ExecuteReusing<__VA_ARGS__>)           \
  WARPHASH_ENTRY(count, warphash::Count<__VA_ARGS__>)                              \
  WARPHASH_ENTRY(find_all, warphash::FindAll<__VA_ARGS__>)                         \
  WARPHASH_ENTRY(retract, warphash::Retract<__VA_ARGS__>)                          \
  WARPHASH_ENTRY(erase_all, warphash::EraseAll<__VA_ARGS__>)

// Design D over slots of WORD (u32 or u64), VALUED or not, N to a node.
#define WARPHASH_DESIGN(D, WORD, VALUED, N) warphash::D<warphash::Slots<WORD, VALUED, N>>

#define WARPHASH_ENTRIES(D, WORD, VALUED, N) WARPHASH_LIST_ENTRIES(WARPHASH_DESIGN(D, WORD, VALUED, N))
