// What kernels on lists are given (core/abi.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// A table of lists, with its pool of nodes.
struct ChainTable : Table {
  u64 pool;        // address of a Pool (chains/slab_allocator.cuh)
  u64 pool_units;  // address of the units of a pool that has one super block, or 0
  u64 tails;       // where keys repeat: address of a u32 for each list (chains/append.cuh)
};

// An operation on a table of lists.
struct ChainBatch : Batch {
  u64 operations;      // execute: Operation per element, u8
  u64 offsets;         // find_all: u64 per element, and one more: where its values begin in out_values
  u64 first_list;      // flush, scan: element i is this list + i
  u64 source_nodes;    // relist: address of the first nodes of another table's lists
  u64 source_buckets;  // and how many hashed buckets begin there
  u64 source_pool;     // and the address of its Pool
};

// Slabs that are taken or given back without a table (chains/slabs.cuh).
struct SlabBatch : Launch {
  u64 addresses;  // of slabs
};

// What a design over lists takes.
struct OverChains {
  using Table = ChainTable;
  using Batch = ChainBatch;
};

}  // namespace warphash
