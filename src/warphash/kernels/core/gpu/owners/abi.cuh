// What the host and the kernels that find the owners of places share (core/gpu/owners/owners.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Places that a warp finds the elements of together, one a lane.
constexpr int kOwnerTile = 32;

}  // namespace warphash
