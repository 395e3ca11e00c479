// Rows of bytes, as the caller has them and as tables keep them.
#pragma once
#include "core/abi.cuh"
#include "platform/platform.cuh"

namespace warphash {

// Bytes that a copy of these addresses and this length can move at once.
WARPHASH_FN u64 stride_of_copy(const void* to, const void* from, u64 bytes) {
  const u64 aligned = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes;
  return aligned % 8 == 0 ? 8 : aligned % 4 == 0 ? 4 : 1;
}

template <class Word>
WARPHASH_FN void copy_words(u8* to, const u8* from, u64 bytes) {
  for (u64 j = 0; j < bytes; j += sizeof(Word))
    *reinterpret_cast<Word*>(to + j) = *reinterpret_cast<const Word*>(from + j);
}

WARPHASH_FN void copy_row(u8* to, const u8* from, u64 bytes) {
  const u64 stride = stride_of_copy(to, from, bytes);
  if (stride == 8)
    copy_words<u64>(to, from, bytes);
  else if (stride == 4)
    copy_words<u32>(to, from, bytes);
  else
    copy_words<u8>(to, from, bytes);
}

}  // namespace warphash
