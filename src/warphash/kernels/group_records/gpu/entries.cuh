// The kernels of the records of groups on a GPU.
#pragma once
#include "group_records/gpu/accumulate.cuh"

#define WARPHASH_PLAIN_ENTRIES                          \
  WARPHASH_ENTRY(begin_records, warphash::BeginRecords) \
  WARPHASH_ENTRY(accumulate, warphash::Accumulate)      \
  WARPHASH_ENTRY(finish_records, warphash::FinishRecords)
