// The entry points of a quotient design on a GPU: a block of threads takes a range.
#pragma once
#include "quotient/entries.cuh"
#include "quotient/gpu/bring.cuh"
#include "quotient/gpu/crowds.cuh"
#include "quotient/gpu/erase.cuh"
#include "quotient/gpu/few.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/gpu/locked.cuh"
#include "quotient/gpu/put.cuh"
#include "quotient/gpu/stuck.cuh"
#include "quotient/gpu/take_over.cuh"

namespace warphash {

template <class Work>
struct BlockARange : OverQuotients {
  using Batch = typename Work::Batch;
  static constexpr bool kWalks = true;
  // As many blocks as shared memory has room for, and as the compiler can do without spilling.
  static constexpr bool kFive = Work::kCopies && Work::kMemoryBytes <= 44 << 10 && Work::S::kRemainderBits == 14;
  static constexpr u32 kThreads = block_threads(Work::kThreads),
                       kBlocks = (kFive ? 5 : 4) * kApplyingThreads / kThreads;
  WARPHASH_FN static void run(const QuotientTable& t, const Batch& b) {
    const u64 block = thread_in_grid() / threads_in_block();
    if (block >= Work::ranges_of(t, b)) return;
    const u32 range = Work::range_at(b, block);
    if (!Work::takes(t, b, range)) return;
    void* const memory = block_memory<Work::kMemoryBytes>();
    Work::prepare(memory);
    Work(t, b, range, memory).run();
  }
};

}  // namespace warphash

#define WARPHASH_ENTRIES(D, WORD, VALUE, N)                                                                       \
  WARPHASH_QUOTIENT_ENTRIES(warphash::CountByBlocks, warphash::ScatterByBlocks, warphash::BlockARange,            \
                            warphash::LinesByQuads, WARPHASH_DESIGN(D, WORD, VALUE, N))                           \
  WARPHASH_ENTRY(                                                                                                 \
      apply_in_place,                                                                                             \
      warphash::BlockARange<warphash::ApplyToRange<WARPHASH_DESIGN(D, WORD, VALUE, N), warphash::LinesInGlobal>>) \
  WARPHASH_ENTRY(                                                                                                 \
      apply_some,                                                                                                 \
      warphash::BlockARange<warphash::ApplyToRange<WARPHASH_DESIGN(D, WORD, VALUE, N), warphash::LinesOfCrowds>>) \
  WARPHASH_ENTRY(                                                                                                 \
      build_some,                                                                                                 \
      warphash::BlockARange<warphash::BuildRange<WARPHASH_DESIGN(D, WORD, VALUE, N), warphash::LinesOfCrowds>>)   \
  WARPHASH_ENTRY(apply_crowds, warphash::ApplyCrowds<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                         \
  WARPHASH_ENTRY(erase_alone, warphash::EraseAlone<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                           \
  WARPHASH_ENTRY(put_alone, warphash::PutAlone<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                               \
  WARPHASH_ENTRY(put_stuck, warphash::PutStuck<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                               \
  WARPHASH_ENTRY(renew_filters, warphash::RenewFilters<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                       \
  WARPHASH_ENTRY(update_few, warphash::UpdateFew<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                             \
  WARPHASH_ENTRY(update_locked, warphash::UpdateLocked<WARPHASH_DESIGN(D, WORD, VALUE, N)>)                       \
  WARPHASH_ENTRY(take_over, warphash::BlockARange<warphash::TakeOverRange<WARPHASH_DESIGN(D, WORD, VALUE, N)>>)   \
  WARPHASH_ENTRY(take_over_with,                                                                                  \
                 warphash::BlockARange<warphash::TakeOverRangeWithBatch<WARPHASH_DESIGN(D, WORD, VALUE, N)>>)
