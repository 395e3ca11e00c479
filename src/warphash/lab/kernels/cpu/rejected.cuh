// The entry points of rejected_variants.cuh on a CPU: a thread takes one bucket after another.
#pragma once
#include "rejected_variants.cuh"
#include "two_level/cpu/entries.cuh"

#define WARPHASH_PLAIN_ENTRIES WARPHASH_REJECTED_ENTRIES(warphash::OneThreadEach)
