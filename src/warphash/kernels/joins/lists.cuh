// The rows of each key, as kernels read them (RowLists in joins/abi.cuh). A negative code stands for the list behind the
// others, which is empty, or has the row -1 if all elements are kept.
#pragma once
#include "joins/abi.cuh"

namespace warphash {

// Where the list of a code begins; that of the next code is behind it. By the sign and not by a comparison, of which
// compilers make a branch.
template <class Code>
WARPHASH_FN const u32* list_of(const RowLists& t, Code code) {
  const u64 list = static_cast<u64>(static_cast<i64>(code)), is_there = ~static_cast<u64>(static_cast<i64>(code) >> 63);
  return reinterpret_cast<const u32*>(t.offsets) + (t.size + ((list - t.size) & is_there));
}

// How many pairs an element with a code has.
template <class Code>
WARPHASH_FN u64 pairs_of(const RowLists& t, const PairBatch& b, Code code) {
  const u32* const list = list_of(t, code);
  return list[1] - list[0] + (b.keeps_all & (code < 0));
}

}  // namespace warphash
