// The kernels of the words of groups on a GPU.
#pragma once
#include "group_records/gpu/accumulate.cuh"

#define WARPHASH_PLAIN_ENTRIES                             \
  WARPHASH_ENTRY(begin_words, warphash::BeginWords)        \
  WARPHASH_ENTRY(accumulate, warphash::AccumulateInRounds) \
  WARPHASH_ENTRY(finish_words, warphash::FinishWords)
