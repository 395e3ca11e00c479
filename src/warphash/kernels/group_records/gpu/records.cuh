// Records of groups in the memory of a GPU: how they lie, begin and end.
//
//   begin_records   each record -> the words of no values
//   finish_records  each record -> its words as the caller gets them, a column for each accumulator
//
// Layout. The words of a record lie together, in the order of accumulators:
//
//   records  [ word 0 | word 1 | … of record 0 ]  [ … of record 1 ]  …     u64
//
// There is a record for each group, by its number.
//
// Protocol. A thread has several records of a tile, kRoundThreads from one to the next, and goes from word to word. To
// finish, it turns ranks back into numbers, and writes the words by the numbers of the groups.
//
// Why words lie together. A group's words are combined with one after the other: in columns, each would fetch a line of
// its own.
//
// Why words are the outer loop. What an accumulator is, is read once for all records of the thread.
#pragma once
#include "core/gpu/batch_tiles.cuh"
#include "group_records/gpu/abi.cuh"
#include "group_records/operations.cuh"

namespace warphash {

WARPHASH_FN u64* words_of(const GroupRecords& t, const RecordBatch& b, u64 record) {
  return in_global(pointer<u64>(t.records)) + record * b.width;
}

struct OverRecords : OverTilesOfRounds {
  using Table = GroupRecords;
  using Batch = RecordBatch;
  static constexpr u32 kAtOnce = 4;
  // The records of this thread, kAtOnce at a time, from the first of them.
  template <class See>
  WARPHASH_FN static void for_each(const RecordBatch& b, const See& see) {
    const u64 begin = block() * kRoundTile + thread_in_block();
    for (u32 round = 0; round < kRoundTile && begin + round < b.n; round += kAtOnce * kRoundThreads) see(begin + round);
  }
};

struct BeginRecords : OverRecords {
  WARPHASH_FN static void run(const GroupRecords& t, const RecordBatch& b) {
    for_each(b, [&](u64 first) {
      for (u64 word = 0; word < b.width; ++word) {
        const u64 identity = identity_of(accumulator_of(b, word));
#pragma unroll
        for (u32 k = 0; k < kAtOnce; ++k)
          if (first + k * kRoundThreads < b.n) words_of(t, b, first + k * kRoundThreads)[word] = identity;
      }
    });
  }
};

struct FinishRecords : OverRecords {
  WARPHASH_FN static void run(const GroupRecords& t, const RecordBatch& b) {
    for_each(b, [&](u64 first) {
      for (u64 word = 0; word < b.width; ++word) {
        const Finish finish(b, accumulator_of(b, word));
#pragma unroll
        for (u32 k = 0; k < kAtOnce; ++k) {
          const u64 group = first + k * kRoundThreads;
          if (group < b.n) finish.out[group] = finish(words_of(t, b, group)[word]);
        }
      }
    });
  }
};

}  // namespace warphash
