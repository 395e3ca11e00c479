// The entry points of a quotient design on a CPU: a thread takes one range after another.
#pragma once
#include "quotient/cpu/bring.cuh"
#include "quotient/cpu/lines.cuh"
#include "quotient/entries.cuh"

namespace warphash {

template <class Work>
struct OneThreadARange : OverQuotients {
  static constexpr bool kWalks = true;
  static void run(const QuotientTable& t, const QuotientBatch& b, u64 begin, u64 end) {
    const QuotientTable table = t;  // a local copy, as in core/cpu/schedule.cuh
    alignas(64) u8 memory[Work::kMemoryBytes];
    Work::prepare(memory);
    for (u64 number = (begin + kApplyingThreads - 1) / kApplyingThreads; number * kApplyingThreads < end; ++number)
      Work::run_block(table, b, number, memory);
  }
};

}  // namespace warphash

#define WARPHASH_ENTRIES(D, WORD, VALUED, N)                                                                 \
  WARPHASH_QUOTIENT_ENTRIES(warphash::CountByThreads, warphash::ScatterByThreads, warphash::OneThreadARange, \
                            warphash::LinesInPlace, WARPHASH_DESIGN(D, WORD, VALUED, N))
