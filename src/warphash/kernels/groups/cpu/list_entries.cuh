// The kernels of value lists on a CPU. Lists are walked in blocks of elements, whose lines are fetched together, one step
// of the walk after another.
#pragma once
#include <cstring>

#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/cpu/order.cuh"
#include "groups/value_lists.cuh"

namespace warphash {

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
        if (has_group(b, first + k)) {
          prefetch(states_of(t) + group_of(b, first + k));
          prefetch(ends_of(t) + group_of(b, first + k));
        }
      u64 states[kBlock];
      u32 segments[kBlock];
      for (u32 k = 0; k < n; ++k) {
        states[k] = state_of(t, b, first + k);
        segments[k] = low_half(states[k]) ? low_half(ends_of(t)[group_of(b, first + k)]) : 0;
        if (!low_half(states[k])) continue;
        prefetch(begins_of(t) + segments[k]);
        prefetch(links_of(t) + segments[k]);
      }
      for (u32 k = 0; k < n; ++k)
        if (low_half(states[k]))
          prefetch(pointer<const u8>(begins_of(t)[segments[k]]) + high_half(states[k]) * t.row_bytes);
      for (u32 k = 0; k < n; ++k) copy(t, b, first + k, states[k], segments[k]);
    }
  }

 private:
  // Copies the values of an element run by run.
  WARPHASH_FN static void copy(const ValueLists& t, const ListBatch& b, u64 i, u64 state, u32 segment) {
    u64 to = pointer<const u64>(b.offsets)[i], skipped = high_half(state);
    for (u64 left = low_half(state); left;) {
      const u64 link = links_of(t)[segment], length = low_half(link);
      if (skipped < length) {
        const u64 count = length - skipped < left ? length - skipped : left;
        const u8* const from = pointer<const u8>(begins_of(t)[segment]) + skipped * t.row_bytes;
        if (b.out_values) copy_rows(pointer<u8>(b.out_values) + to * t.row_bytes, from, count, t.row_bytes);
        if (b.out_keys)
          for (u64 k = 0; k < count; ++k)
            copy_row(pointer<u8>(b.out_keys) + (to + k) * b.key_bytes, pointer<const u8>(b.keys) + i * b.key_bytes,
                     b.key_bytes);
        to += count, left -= count, skipped = 0;
      } else {
        skipped -= length;
      }
      segment = high_half(link);
    }
  }
  WARPHASH_FN static void copy_rows(u8* to, const u8* from, u64 count, u64 row_bytes) {
    if (count == 1)
      copy_row(to, from, row_bytes);
    else
      std::memcpy(to, from, count * row_bytes);
  }
};
template <>
struct TaskOnCpu<EmitOfKeys> {
  using type = EmitByBlocks;
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_LIST_ENTRIES                               \
  WARPHASH_ENTRY(count_digits, warphash::CountDigits) \
  WARPHASH_ENTRY(order_by_digit, warphash::OrderByDigit)
