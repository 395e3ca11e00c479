// The entry points of subtables/entries.cuh, for tables whose warps put one key at a time (subtables/gpu/warp_insert.cuh).
#pragma once
#include "subtables/entries.cuh"
#include "subtables/gpu/warp_insert.cuh"

#undef WARPHASH_ENTRIES
#define WARPHASH_ENTRIES(D, WORD, VALUE, N)                                                                  \
  WARPHASH_PAIR_ENTRIES(warphash::SettleByWarps, warphash::PlaceByWarps, WARPHASH_DESIGN(D, WORD, VALUE, N)) \
  WARPHASH_KEY_ENTRIES(WARPHASH_DESIGN(D, WORD, 0, N))
