// The kernels of value lists on a GPU.
#pragma once
#include "groups/gpu/emit.cuh"
#include "groups/gpu/order.cuh"
#include "groups/value_lists.cuh"

#define WARPHASH_PLAIN_ENTRIES                                           \
  WARPHASH_LIST_ENTRIES                                                  \
  WARPHASH_ENTRY(tiles, warphash::FirstsOfTiles)                         \
  WARPHASH_ENTRY(emit, warphash::EmitByTiles)                            \
  WARPHASH_ENTRY(count_digits, warphash::CountDigits)                    \
  WARPHASH_ENTRY(order_by_digit4, warphash::OrderByDigit<warphash::u32>) \
  WARPHASH_ENTRY(order_by_digit8, warphash::OrderByDigit<warphash::u64>)
