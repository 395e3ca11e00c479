// Rows of several columns packed into one word each, on a CPU, a column in each launch.
//
//   pack  words -> words * span + (item - low)
//
// An item is taken as a word of its own width, and its distance from `low` modulo that width; so signed and unsigned items
// are packed alike. A distance beyond the span, which the column did not have when the host looked, is taken for the
// greatest: another thread may write to the column meanwhile. An element is read and written by one thread.
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/abi.cuh"

namespace warphash {

struct PackColumn {
  using Table = Members;
  using Batch = PackBatch;
  static constexpr bool kWalks = true;
  static void run(const Members& m, const PackBatch& b, u64 begin, u64 end) {
    switch (m.word_bytes) {
      case 1:
        return pack<u8>(m, b, begin, end);
      case 2:
        return pack<u16>(m, b, begin, end);
      case 4:
        return pack<u32>(m, b, begin, end);
      default:
        return pack<u64>(m, b, begin, end);
    }
  }

 private:
  template <class Word>
  static void pack(const Members& m, const PackBatch& b, u64 begin, u64 end) {
    const Word* const items = pointer<const Word>(b.items);
    u64* const words = pointer<u64>(b.words);
    const Word low = static_cast<Word>(m.low);
    const u64 span = m.range, greatest = span - 1;
    for (u64 i = begin; i < end; ++i) {
      const u64 distance = static_cast<Word>(items[i] - low);
      const u64 before = b.is_first ? 0 : words[i] * span;
      words[i] = before + (distance < greatest ? distance : greatest);
    }
  }
};

}  // namespace warphash
