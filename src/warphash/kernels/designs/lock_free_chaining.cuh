// Lock-free chaining: a bucket is a list of nodes of one key, the first in an array, the others from a pool. Source:
// the table of Misra and Chaudhuri (2012), which A Dynamic Hash Table for the GPU (Ashkiani et al., 2018), section
// VI-C, measures itself against.
//
// Layout: chains/slab_slots.cuh, the nodes of one key. A key of 4 bytes is half of its node: the table uses at most 50
// % of its memory.
//
// Protocol: that of designs/slab.cuh, with a lane to each key instead of a tile of lanes to each slab.
//
// Departures. Their table takes nodes that the caller has numbered beforehand, and never gives a node back. Here nodes
// come from the allocator of the slabs, in units of a node, so a table of any history holds what it should. The first
// node of a bucket lies in the array itself, which saves every operation one read.
#pragma once
#include "designs/slab.cuh"

namespace warphash {

template <class S_>
struct LockFreeChaining : Slab<S_> {};

}  // namespace warphash
