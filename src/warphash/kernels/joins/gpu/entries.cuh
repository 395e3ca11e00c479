// The kernels of joins on a GPU.
#pragma once
#include "joins/gpu/hits.cuh"
#include "joins/gpu/pairs.cuh"

#define WARPHASH_PLAIN_ENTRIES                                                          \
  WARPHASH_ENTRY(count_pairs, warphash::InRounds<warphash::CountPairs>)                 \
  WARPHASH_ENTRY(tiles, warphash::FirstsOfTiles)                                        \
  WARPHASH_ENTRY(emit_pairs4, warphash::EmitPairs<warphash::i32>)                       \
  WARPHASH_ENTRY(emit_pairs8, warphash::EmitPairs<warphash::i64>)                       \
  WARPHASH_ENTRY(count_codes, warphash::CountHits<warphash::HitsOfCodes>)               \
  WARPHASH_ENTRY(count_flags, warphash::CountHits<warphash::HitsOfFlags>)               \
  WARPHASH_ENTRY(emit_codes4, warphash::EmitHits<warphash::HitsOfCodes, warphash::i32>) \
  WARPHASH_ENTRY(emit_codes8, warphash::EmitHits<warphash::HitsOfCodes, warphash::i64>) \
  WARPHASH_ENTRY(emit_flags4, warphash::EmitHits<warphash::HitsOfFlags, warphash::i32>) \
  WARPHASH_ENTRY(emit_flags8, warphash::EmitHits<warphash::HitsOfFlags, warphash::i64>)
