// The order of a batch by its numbers on a CPU (groups/order.cuh): a thread orders a chunk of elements.
//
// Layout. A chunk is `length` elements in a row, but for the last one. Its counters follow one another:
// counters[chunk << bits | digit]. There are as many chunks as threads, and a digit has as many bits as the counters of
// all chunks leave room for in the cache (storage/groups/order.py).
//
// Protocol. A thread does the chunks that begin in its part of the batch. It counts the elements of a chunk in their
// order, and in the next launch writes them in their order. It alone uses the counters of the chunk, so nothing is
// atomic.
//
// Why numbers stay where they are. A pass writes the elements alone, and reads their numbers at random. The digits
// of a CPU are wide, so most batches have one pass, which reads all numbers in a row.
#pragma once
#include "core/cpu/schedule.cuh"
#include "groups/order.cuh"

namespace warphash {

// One chunk of a batch.
struct ChunkOfOrder {
  const ChunkOrderBatch b;
  const u64 begin, end;
  u32* const counters;

  ChunkOfOrder(const ChunkOrderBatch& batch, u64 chunk)
      : b(batch),
        begin(chunk * b.length),
        end(begin + b.length < b.n ? begin + b.length : b.n),
        counters(pointer<u32>(b.counters) + chunk * (b.mask + 1)) {}
  u32 element(u64 i) const { return b.order ? pointer<const u32>(b.order)[i] : static_cast<u32>(i); }
  u32& counter(u32 element) const { return counters[digit_of(b, pointer<const u32>(b.numbers)[element])]; }

  void count() const {
    for (u64 i = begin; i < end; ++i) ++counter(element(i));
  }
  void order() const {
    for (u64 i = begin; i < end; ++i) {
      const u32 from = element(i);
      const u32 to = counter(from)++;
      if (b.out_order)
        pointer<u32>(b.out_order)[to] = from;
      else if (b.row_bytes == 8)
        pointer<u64>(b.out_rows)[to] = pointer<const u64>(b.rows)[from];
      else
        pointer<u32>(b.out_rows)[to] = pointer<const u32>(b.rows)[from];
    }
  }
};

template <void (ChunkOfOrder::*kStep)() const>
struct OverChunksOfOrder {
  using Table = ValueLists;
  using Batch = ChunkOrderBatch;
  static constexpr bool kWalks = true;
  static void run(const ValueLists&, const ChunkOrderBatch& b, u64 begin, u64 end) {
    for (u64 chunk = (begin + b.length - 1) / b.length; chunk < b.chunks && chunk * b.length < end; ++chunk)
      (ChunkOfOrder(b, chunk).*kStep)();
  }
};
using CountDigits = OverChunksOfOrder<&ChunkOfOrder::count>;
using OrderByDigit = OverChunksOfOrder<&ChunkOfOrder::order>;

}  // namespace warphash
