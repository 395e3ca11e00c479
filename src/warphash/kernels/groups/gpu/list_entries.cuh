// The kernels of value lists on a GPU.
#pragma once
#include "groups/order.cuh"
#include "groups/value_lists.cuh"

#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_LIST_ENTRIES                               \
  WARPHASH_ENTRY(count_digits, warphash::CountDigits) \
  WARPHASH_ENTRY(order_by_digit, warphash::OrderByDigit)
