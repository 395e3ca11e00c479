// New keys of a table, and the numbers of a batch whose keys the table lacked in part.
//
//   pack_missing    each missing element -> its row, behind those of the missing elements before it
//   take_firsts     each new key -> its row, from the first missing element that has the key; and its number
//   answer_missing  each missing element -> the number of its key, and whether it is the first that has the key
//
// Layout. A batch of n elements has m missing ones, which are packed in their order, and these have k new keys.
//
//   found    u8 per element    1 0 1 0 0      n
//   starts   u64 per element   0 1 1 2 2      n, elements before it whose keys the table has
//   numbers  u32 per missing     0   1 0      m, of groups/number.cuh: which new key
//   firsts   u32 per new key     0   1        k, of groups/number.cuh: its first missing element
//
// New key j gets the number base + j. Numbers have the width of the table's values, and wrap as these do: the host has
// checked that the greatest one fits.
//
// An element of the batch is read and written by one thread, so no atomic is needed.
#pragma once
#include "core/straight.cuh"
#include "groups/abi.cuh"
#include "rows/rows.cuh"

namespace warphash {

WARPHASH_FN void put_number(u64 numbers, u64 i, u64 number, u64 number_bytes) {
  if (number_bytes == 8)
    reinterpret_cast<u64*>(numbers)[i] = number;
  else if (number_bytes == 4)
    reinterpret_cast<u32*>(numbers)[i] = static_cast<u32>(number);
  else
    for (u64 j = 0; j < number_bytes; ++j)
      reinterpret_cast<u8*>(numbers)[i * number_bytes + j] = static_cast<u8>(number >> 8 * j);
}

// The missing elements before element i, which is missing.
WARPHASH_FN u64 missing_before(const MissingBatch& b, u64 i) {
  return b.starts ? i - reinterpret_cast<const u64*>(b.starts)[i] : i;
}
WARPHASH_FN bool is_missing(const MissingBatch& b, u64 i) {
  return !b.found || !reinterpret_cast<const u8*>(b.found)[i];
}

struct PackMissing : Straight<StoredRows, MissingBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const MissingBatch& b, u64 i, State&) {
    if (is_missing(b, i))
      copy_row(reinterpret_cast<u8*>(b.out_keys) + missing_before(b, i) * b.key_bytes,
               reinterpret_cast<const u8*>(b.keys) + i * b.key_bytes, b.key_bytes);
    return false;
  }
};

struct TakeFirsts : Straight<StoredRows, MissingBatch> {
  WARPHASH_FN static const u8* row(const MissingBatch& b, u64 i) {
    return reinterpret_cast<const u8*>(b.keys) + reinterpret_cast<const u32*>(b.firsts)[i] * b.key_bytes;
  }
  WARPHASH_FN static const void* hint(const StoredRows&, const MissingBatch& b, u64 i) {
    return b.out_keys ? row(b, i) : nullptr;
  }
  WARPHASH_FN static bool start(const StoredRows&, const MissingBatch& b, u64 i, State&) {
    if (b.out_keys) copy_row(reinterpret_cast<u8*>(b.out_keys) + i * b.key_bytes, row(b, i), b.key_bytes);
    put_number(b.out_numbers, i, b.base + i, b.number_bytes);
    return false;
  }
};

struct AnswerMissing : Straight<StoredRows, MissingBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const MissingBatch& b, u64 i, State&) {
    const bool missing = is_missing(b, i);
    const u64 place = missing_before(b, i);
    const u32 key = missing ? reinterpret_cast<const u32*>(b.numbers)[place] : 0;
    if (missing) put_number(b.answers, i, b.base + key, b.number_bytes);
    if (b.added)  // only then: `firsts` is read at random
      reinterpret_cast<u8*>(b.added)[i] = missing && reinterpret_cast<const u32*>(b.firsts)[key] == place;
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_TABLE_NUMBER_ENTRIES                 \
  WARPHASH_ENTRY(pack_missing, warphash::PackMissing) \
  WARPHASH_ENTRY(take_firsts, warphash::TakeFirsts)   \
  WARPHASH_ENTRY(answer_missing, warphash::AnswerMissing)
