// The seam's second half: how the elements of a batch are spread over what the platform has.
#pragma once
#include "platform/platform.cuh"
#if defined(WARPHASH_CUDA) || defined(WARPHASH_EMULATED)
#include "core/gpu/schedule.cuh"
#else
#include "core/cpu/schedule.cuh"
#endif
