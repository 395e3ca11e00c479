// What the host and the kernels that accumulate on a GPU share (group_records/gpu/records.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// The records of groups, by their numbers.
struct GroupRecords {
  u64 records;  // u64 per word, those of a record together
  u64 count;    // how many records there are
};

}  // namespace warphash
