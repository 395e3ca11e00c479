// The kernels of records on a CPU.
#pragma once
#include "group_records/cpu/records.cuh"

#define WARPHASH_PLAIN_ENTRIES                                                                                    \
  WARPHASH_ENTRY(record_chunks, warphash::OverChunks<warphash::RecordBatch, warphash::RecordChunk<warphash::u32>, \
                                                     warphash::RecordChunk<warphash::u64>>)                       \
  WARPHASH_ENTRY(accumulate, warphash::AccumulateStretches)                                                       \
  WARPHASH_ENTRY(merge_records, warphash::MergeRecords)                                                           \
  WARPHASH_ENTRY(bring_values, warphash::BringValues)                                                             \
  WARPHASH_ENTRY(record_parts, warphash::RecordParts)                                                             \
  WARPHASH_ENTRY(replay_firsts,                                                                                   \
                 warphash::OverChunks<warphash::RecordBatch, warphash::ReplayFirsts, warphash::ReplayFirsts>)
