// A stable order of the elements of a batch by their numbers: a counting sort, digit by digit.
//
//   count_digits   how many elements of each chunk have each digit
//   order_by_digit elements -> their places in the order of one digit; on a GPU, by the bytes that go along
//
// Layout. A digit is 1 to 8 bits of a number on a GPU, and any number of bits on a CPU:
//
//   bit  31           shift + bits        shift           0
//        [ higher digits |    the digit    | lower digits ]      mask = 2^bits - 1
//
// A chunk is a run of elements of the batch. There is a counter, u32, for each digit and chunk.
//
//   on a CPU (groups/cpu/order.cuh)   counters[chunk << bits | digit]       two threads share no line
//   on a GPU (groups/gpu/order.cuh)   counters[digit * chunks + chunk]      sums of counters in a row are places
//
// Protocol, for each digit, the lowest first (LSD radix sort: Knuth, The Art of Computer Programming, volume 3, section
// 5.2.5):
//   1. count_digits counts the elements of each chunk and digit.
//   2. The host turns the counts into places (storage/groups/order.py). The elements of a digit and a chunk go behind
//      those of all lesser digits, and behind those of the digit in the chunks before.
//   3. order_by_digit brings each element to the next place of its digit and chunk, in the order of the chunk.
// So elements of one digit keep their order, within a chunk and across chunks, and the order by higher digits keeps
// that by lower ones. The end of a launch orders one step before the next.
//
// Why. No element is compared with another one, and the time does not depend on the numbers. Rows of 4 or 8 bytes go to
// their places with the last digit, which saves a pass.
#pragma once
#include "core/bulk.cuh"
#include "groups/abi.cuh"

namespace warphash {

WARPHASH_FN u32 digit_of(const OrderBatch& b, u32 number) {
  return number >> static_cast<u32>(b.shift) & static_cast<u32>(b.mask);
}

}  // namespace warphash
