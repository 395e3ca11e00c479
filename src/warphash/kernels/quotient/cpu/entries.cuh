// The entry points of a quotient design on a CPU: a thread takes one range after another.
#pragma once
#include "quotient/cpu/apply.cuh"
#include "quotient/cpu/bring.cuh"
#include "quotient/cpu/build.cuh"
#include "quotient/cpu/find.cuh"
#include "quotient/cpu/scan.cuh"
#include "quotient/cpu/slots.cuh"
#include "quotient/entries.cuh"

#define WARPHASH_ENTRIES_OF(...)                                                                                 \
  WARPHASH_QUOTIENT_ENTRIES(warphash::CountForAllForms, warphash::ScatterForAllForms, warphash::OneThreadARange, \
                            warphash::LinesInPlace, __VA_ARGS__)                                                 \
  WARPHASH_ENTRY(count_parts, warphash::CountPartsForAllForms<__VA_ARGS__>)                                      \
  WARPHASH_ENTRY(place_parts, warphash::PlaceParts)                                                              \
  WARPHASH_ENTRY(scatter_parts, warphash::ScatterPartsForAllForms<__VA_ARGS__>)                                  \
  WARPHASH_ENTRY(build_groups, warphash::BuildGroups<__VA_ARGS__>)

// Design D over slots of WORD (u32 or u64) with a value of VALUE bytes (0, 4 or 8), N to a bucket.
#define WARPHASH_ENTRIES(D, WORD, VALUE, N) \
  WARPHASH_ENTRIES_OF(warphash::D<warphash::SlotsOnCpu<warphash::QuotientSlots<WORD, VALUE, N>>>)
