// What the host and the kernels of owners on a GPU share (owners/gpu/order.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Elements that a warp takes together: a round. A segment of a GPU is a few rounds.
constexpr int kOwnerRound = 256;

// Ranks whose counters the lanes of a warp have, at most.
constexpr int kFewOwners = 8;

}  // namespace warphash
