// The entry points of rejected_variants.cuh on a GPU: a block of threads is a block.
#pragma once
#include "rejected_variants.cuh"
#include "two_level/gpu/entries.cuh"

#define WARPHASH_PLAIN_ENTRIES WARPHASH_REJECTED_ENTRIES(warphash::BlocksOfThreads)
