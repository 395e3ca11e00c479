// The kernels that number keys on a GPU.
#pragma once
#include "groups/gpu/rounds.cuh"
#include "groups/gpu/word_parts.cuh"
#include "groups/table_numbers.cuh"

#undef WARPHASH_PLAIN_ENTRIES  // of rows/rows.cuh, of which the comparison of rows is taken
#define WARPHASH_PLAIN_ENTRIES \
  WARPHASH_ROW_NUMBER_ENTRIES  \
  WARPHASH_ROUND_ENTRIES       \
  WARPHASH_WORD_PARTS_ENTRIES  \
  WARPHASH_WORD_NUMBER_ENTRIES \
  WARPHASH_TABLE_NUMBER_ENTRIES
