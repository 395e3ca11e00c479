// A stable order of the elements of a batch by their numbers: a counting sort, digit by digit, chunk by chunk.
//
//   count_digits   how many elements of each chunk have each digit
//   order_by_digit elements -> their places in the order of one digit
//
// Layout. counters[digit * digit_stride + chunk * chunk_stride]. The sum of the counts of all lesser digits, and of the
// digit in the chunks before, is the place where the elements of a digit and a chunk go. The host turns counts into places
// (storage/groups/order.py). On a CPU, a chunk's counters follow one another, so that two threads share no line; on a GPU,
// a digit's, so that sums of counters in a row are places.
//
// Protocol. A thread counts the elements of a chunk in their order, and later writes them in their order. It alone uses
// the counts of the chunk. So elements of one digit keep their order, within a chunk and across chunks. A batch whose
// numbers have more bits than a digit is ordered by the lowest digit first (LSD radix sort: Knuth, The Art of Computer
// Programming, volume 3, section 5.2.5).
//
// Rows may go to the places instead of the numbers of elements: the last digit then saves a pass.
#pragma once
#include "core/bytes.cuh"
#include "core/straight.cuh"
#include "groups/abi.cuh"

namespace warphash {

// One chunk of a batch.
struct ChunkOfOrder {
  const OrderBatch b;
  const u64 chunk, begin, end;

  WARPHASH_FN ChunkOfOrder(const OrderBatch& batch, u64 i)
      : b(batch),
        chunk(i),
        begin(i * batch.length),
        end(begin + batch.length < batch.elements ? begin + batch.length : batch.elements) {}
  WARPHASH_FN u32 element(u64 i) const {
    return b.order ? reinterpret_cast<const u32*>(b.order)[i] : static_cast<u32>(i);
  }
  WARPHASH_FN u32& counter(u32 element) const {
    const u64 digit = reinterpret_cast<const u32*>(b.numbers)[element] >> b.shift & b.mask;
    return reinterpret_cast<u32*>(b.counters)[digit * b.digit_stride + chunk * b.chunk_stride];
  }

  WARPHASH_FN void count() const {
    for (u64 i = begin; i < end; ++i) ++counter(element(i));
  }
  WARPHASH_FN void order() const {
    for (u64 i = begin; i < end; ++i) {
      const u32 from = element(i);
      const u32 to = counter(from)++;
      if (b.out_order)
        reinterpret_cast<u32*>(b.out_order)[to] = from;
      else if (b.row_bytes == 8)
        reinterpret_cast<u64*>(b.out_rows)[to] = reinterpret_cast<const u64*>(b.rows)[from];
      else
        reinterpret_cast<u32*>(b.out_rows)[to] = reinterpret_cast<const u32*>(b.rows)[from];
    }
  }
};

// An element is a chunk.
struct CountDigits : Straight<ValueLists, OrderBatch> {
  WARPHASH_FN static bool start(const ValueLists&, const OrderBatch& b, u64 i, State&) {
    ChunkOfOrder(b, i).count();
    return false;
  }
};

struct OrderByDigit : Straight<ValueLists, OrderBatch> {
  WARPHASH_FN static bool start(const ValueLists&, const OrderBatch& b, u64 i, State&) {
    ChunkOfOrder(b, i).order();
    return false;
  }
};

}  // namespace warphash
