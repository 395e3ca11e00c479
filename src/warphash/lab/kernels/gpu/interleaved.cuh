// The kernel of interleaved.cuh for lanes that collaborate (core/gpu/collaborating.cuh). Inserts and finds share a pool.
#pragma once
#include "core/gpu/collaborating.cuh"
#include "interleaved.cuh"

#undef WARPHASH_PLAIN_ENTRIES
#define WARPHASH_PLAIN_ENTRIES \
  WARPHASH_ENTRY(interleaved, warphash::Collaborating<warphash::Interleaved<warphash::Stadium<warphash::LivePairs>>>)
