// The entry points of a quotient design on a CPU: a thread takes one range after another.
#pragma once
#include "quotient/cpu/apply.cuh"
#include "quotient/cpu/bring.cuh"
#include "quotient/cpu/build.cuh"
#include "quotient/cpu/find.cuh"
#include "quotient/cpu/scan.cuh"
#include "quotient/cpu/slots.cuh"
#include "quotient/entries.cuh"

// Design D over slots of WORD (u32 or u64) with a value of VALUE bytes (0, 4 or 8), N to a bucket.
#define WARPHASH_ENTRIES(D, WORD, VALUE, N)                                                                      \
  WARPHASH_QUOTIENT_ENTRIES(warphash::CountForAllForms, warphash::ScatterForAllForms, warphash::OneThreadARange, \
                            warphash::LinesInPlace,                                                              \
                            warphash::D<warphash::SlotsOnCpu<warphash::QuotientSlots<WORD, VALUE, N>>>)
