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
        if (groups[k].values()) prefetch(place_of(t, groups[k]));
      }
      for (u32 k = 0; k < n; ++k)
        if (groups[k].values() && groups[k].is_list())
          prefetch(pointer<const u8>(first_of(t, groups[k])->begin) + groups[k].erased() * t.row_bytes);
      for (u32 k = 0; k < n; ++k) copy(t, b, first + k, groups[k]);
    }
  }

 private:
  // What a walk over the values of a group reads first.
  WARPHASH_FN static const void* place_of(const ValueLists& t, const GroupRecord& group) {
    return group.is_list() ? static_cast<const void*>(first_of(t, group)) : pointer<const u8>(group.begin(t.row_bytes));
  }
  WARPHASH_FN static const SegmentRecord* first_of(const ValueLists& t, const GroupRecord& list) {
    return segments_of(t) + list.first_segment();
  }
  // Copies the values of an element run by run.
  WARPHASH_FN static void copy(const ValueLists& t, const ListBatch& b, u64 i, const GroupRecord& group) {
    const u64 begin = pointer<const u64>(b.offsets)[i];
    if (!group.values()) return;
    if (b.out_keys)
      for (u64 k = 0; k < group.values(); ++k)
        copy_row(pointer<u8>(b.out_keys) + (begin + k) * b.key_bytes, pointer<const u8>(b.keys) + i * b.key_bytes,
                 b.key_bytes);
    if (!b.out_values) return;
    u8* const to = pointer<u8>(b.out_values) + begin * t.row_bytes;
    if (group.is_list())
      copy_list(t, group, to);
    else
      copy_rows(to, pointer<const u8>(group.begin(t.row_bytes)), group.values(), t.row_bytes);
  }
  WARPHASH_FN static void copy_list(const ValueLists& t, const GroupRecord& list, u8* to) {
    SegmentRecord segment = *first_of(t, list);
    u64 skipped = list.erased();
    for (u64 left = list.values();;) {
      const u64 length = segment.length();
      if (skipped < length) {
        const u64 count = length - skipped < left ? length - skipped : left;
        copy_rows(to, pointer<const u8>(segment.begin) + skipped * t.row_bytes, count, t.row_bytes);
        to += count * t.row_bytes, left -= count, skipped = 0;
        if (!left) return;
      } else {
        skipped -= length;
      }
      segment = segments_of(t)[segment.next()];
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
