// What the host and the kernels of joins on a GPU share (joins/gpu/hits.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Elements that a warp takes together: a segment.
constexpr int kSegment = 512;

}  // namespace warphash
