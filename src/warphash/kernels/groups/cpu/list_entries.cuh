// The kernels of value lists on a CPU. Lists are walked in blocks of elements, whose lines are fetched together, one step
// of the walk after another. An element of emit_keys is a key: a thread copies whole runs of values.
#pragma once
#include <cstring>

#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/cpu/order.cuh"
#include "groups/value_lists.cuh"

namespace warphash {

// A count has one read to wait for and nothing else to do. The records of the next elements are on their way meanwhile:
// in blocks, each of which begins with a wait, 1 M counts of 16 MB of records took a sixth longer with the lookup of keys.
struct CountAhead {
  using Table = ValueLists;
  using Batch = ListBatch;
  static constexpr bool kWalks = true;
  static constexpr u64 kAhead = 32;

  static void run(const ValueLists& lists, const ListBatch& batch, u64 begin, u64 end) {
    const ValueLists t = lists;
    const ListBatch b = batch;
    CountValues::State state;
    for (u64 i = begin; i < end && i < begin + kAhead; ++i) prefetch(CountValues::hint(t, b, i));
    for (u64 i = begin; i < end; ++i) {
      if (end - i > kAhead) prefetch(CountValues::hint(t, b, i + kAhead));
      CountValues::start(t, b, i, state);
    }
  }
};
template <>
struct TaskOnCpu<CountValues> {
  using type = CountAhead;
};

struct EmitByBlocks {
  using Table = ValueLists;
  using Batch = ListBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64;

  static void run(const ValueLists& lists, const ListBatch& batch, u64 begin, u64 end) {
    const ValueLists t = lists;
    const ListBatch b = batch;
    for (u64 first = begin; first < end; first += kBlock) {
      const u32 n = end - first < kBlock ? static_cast<u32>(end - first) : kBlock;
      for (u32 k = 0; k < n; ++k)
        if (has_group(b, first + k)) prefetch(groups_of(t) + group_of(b, first + k));
      GroupRecord groups[kBlock];
      for (u32 k = 0; k < n; ++k) {
        groups[k] = record_of(t, b, first + k);
        if (groups[k].values()) prefetch(segments_of(t) + groups[k].first_segment());
      }
      for (u32 k = 0; k < n; ++k)
        if (groups[k].values())
          prefetch(pointer<const u8>(segments_of(t)[groups[k].first_segment()].begin) +
                   groups[k].erased() * t.row_bytes);
      for (u32 k = 0; k < n; ++k) copy(t, b, first + k, groups[k]);
    }
  }

 private:
  // Copies the values of an element run by run.
  WARPHASH_FN static void copy(const ValueLists& t, const ListBatch& b, u64 i, const GroupRecord& group) {
    u64 to = pointer<const u64>(b.offsets)[i], skipped = group.erased();
    u32 number = group.first_segment();
    for (u64 left = group.values(); left;) {
      const SegmentRecord segment = segments_of(t)[number];
      const u64 length = segment.length();
      if (skipped < length) {
        const u64 count = length - skipped < left ? length - skipped : left;
        const u8* const from = pointer<const u8>(segment.begin) + skipped * t.row_bytes;
        if (b.out_values) copy_rows(pointer<u8>(b.out_values) + to * t.row_bytes, from, count, t.row_bytes);
        if (b.out_keys)
          for (u64 k = 0; k < count; ++k)
            copy_row(pointer<u8>(b.out_keys) + (to + k) * b.key_bytes, pointer<const u8>(b.keys) + i * b.key_bytes,
                     b.key_bytes);
        to += count, left -= count, skipped = 0;
      } else {
        skipped -= length;
      }
      number = segment.next();
    }
  }
  WARPHASH_FN static void copy_rows(u8* to, const u8* from, u64 count, u64 row_bytes) {
    if (count == 1)
      copy_row(to, from, row_bytes);
    else
      std::memcpy(to, from, count * row_bytes);
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_LIST_ENTRIES                               \
  WARPHASH_ENTRY(emit_keys, warphash::EmitByBlocks)   \
  WARPHASH_ENTRY(count_digits, warphash::CountDigits) \
  WARPHASH_ENTRY(order_by_digit, warphash::OrderByDigit)
