// Rows of bytes: what lies between the caller's keys and values and the words of a slot. No design changes these kernels.
//
//   widen       rows -> words of 4 or 8 bytes, or longer rows, zero-extended
//   narrow      words -> rows
//   fingerprint rows of any width -> 64-bit fingerprints, salted
//   match       is the stored key of each found row the key that was asked for?
//   gather      stored rows -> rows
//   scatter     rows -> stored rows
//   merge       applies an upsert to stored values of one word
//   chunk_sums  counts (u32, `default_value` of them) -> their sum over each chunk (u64)
//   offsets     counts, and where each chunk begins -> where each count begins (u64)
//
// Layout. Rows are packed, `op` bytes each. Stored rows lie at `source_buckets` (a base address), `kind` bytes each for
// widen, narrow, gather and scatter. Row numbers are u64, in `values`.
//
// The row store (storage/row_store.py) keeps keys or values wider than a word: a slot then holds the fingerprint of a key and
// the number of its row. Two keys of one fingerprint never live in the table together: the store draws another salt.
//
// No two different rows have one fingerprint under every salt. The salt is part of each word that is multiplied, by a constant:
// no row has a factor of zero under every salt, and under a salt that makes one zero, the words behind it count as before. Two
// rows of one word differ under the salt that cancels one of them, since only a factor of zero folds to zero. Of longer rows
// there is no proof. A model with words of 8 bits was tried out: any two of its 2^16 rows of two words are told apart by four
// fifths of the salts.
#pragma once
#include "core/bytes.cuh"
#include "core/hash.cuh"
#include "core/straight.cuh"
#include "core/value.cuh"

namespace warphash {

WARPHASH_FN const u8* row_of(const Batch& b, u64 i) { return reinterpret_cast<const u8*>(b.keys) + i * b.op; }
WARPHASH_FN u64 row_number(const Batch& b, u64 i) { return reinterpret_cast<const u64*>(b.values)[i]; }
WARPHASH_FN u8* stored_row(const Batch& b, u64 row) { return reinterpret_cast<u8*>(b.source_buckets) + row * b.kind; }
WARPHASH_FN bool flagged(const Batch& b, u64 i) {
  return !b.out_flags || reinterpret_cast<const u8*>(b.out_flags)[i] == 1;
}

WARPHASH_FN u64 read_word(const u8* p, u64 bytes) {
  u64 x = 0;
  for (u64 j = 0; j < bytes; ++j) x |= static_cast<u64>(p[j]) << (8 * j);
  return x;
}

WARPHASH_FN void copy_extended(u8* to, const u8* from, u64 bytes, u64 longer) {
  for (u64 j = 0; j < longer; ++j) to[j] = j < bytes ? from[j] : 0;
}

struct Widen : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    const u8* row = row_of(b, i);
    if (b.kind == 4)
      reinterpret_cast<u32*>(b.out_keys)[i] = static_cast<u32>(read_word(row, b.op));
    else if (b.kind == 8)
      reinterpret_cast<u64*>(b.out_keys)[i] = read_word(row, b.op);
    else
      copy_extended(reinterpret_cast<u8*>(b.out_keys) + i * b.kind, row, b.op, b.kind);
    return false;
  }
};

struct Narrow : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    const u8* word = reinterpret_cast<const u8*>(b.keys) + i * b.kind;
    u8* row = reinterpret_cast<u8*>(b.out_keys) + i * b.op;
    for (u64 j = 0; j < b.op; ++j) row[j] = word[j];
    return false;
  }
};

struct Fingerprint : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    const u8* row = row_of(b, i);
    const bool aligned = (reinterpret_cast<u64>(row) & 7) == 0;
    u64 x = b.random ^ b.op;
    for (u64 j = 0; j < b.op; j += 8) {
      const u64 left = b.op - j;
      const u64 word =
          left >= 8 && aligned ? *reinterpret_cast<const u64*>(row + j) : read_word(row + j, left < 8 ? left : 8);
      const u64 m = (x ^ word) * 0x9fb21c651e98df25ull;
      x = mix(m ^ multiply_high(x ^ word, 0x9fb21c651e98df25ull)) + b.random;
    }
    reinterpret_cast<u64*>(b.out_keys)[i] = x;
    return false;
  }
};

// Clears the flag of a found element whose stored key is another one.
struct Match : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    if (!flagged(b, i)) return false;
    const u8* stored = stored_row(b, row_number(b, i));
    const u8* row = row_of(b, i);
    bool same = true;
    for (u64 j = 0; j < b.op; ++j) same &= stored[j] == row[j];
    if (!same) reinterpret_cast<u8*>(b.out_flags)[i] = kPresent;
    return false;
  }
};

struct Gather : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    const u8* from = flagged(b, i) ? stored_row(b, row_number(b, i)) : reinterpret_cast<const u8*>(b.default_value);
    copy_row(reinterpret_cast<u8*>(b.out_values) + i * b.op, from, b.op);
    return false;
  }
};

struct Scatter : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    if (flagged(b, i)) copy_row(stored_row(b, row_number(b, i)), row_of(b, i), b.op);
    return false;
  }
};

struct Merge : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    if (!flagged(b, i)) return false;
    const u64 operand = read_word(row_of(b, i), kind_bits(b.kind) / 8);
    u8* base = reinterpret_cast<u8*>(b.source_buckets);
    if (b.default_value == 4)
      combine(reinterpret_cast<u32*>(base) + row_number(b, i), static_cast<u32>(operand), b.claim_mask, b.kind);
    else
      combine(reinterpret_cast<u64*>(base) + row_number(b, i), operand, b.claim_mask, b.kind);
    return false;
  }
};

// A chunk is summed by one thread: the next one's line of counts is the one after its own.
constexpr u64 kChunk = 256;

struct ChunkSums : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    const u32* counts = reinterpret_cast<const u32*>(b.keys);
    u64 sum = 0;
    for (u64 j = i * kChunk; j < (i + 1) * kChunk && j < b.default_value; ++j) sum += counts[j];
    reinterpret_cast<u64*>(b.out_values)[i] = sum;
    return false;
  }
};

struct Offsets : Straight {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    const u32* counts = reinterpret_cast<const u32*>(b.keys);
    u64 at = reinterpret_cast<const u64*>(b.values)[i];
    for (u64 j = i * kChunk; j < (i + 1) * kChunk && j < b.default_value; ++j) {
      reinterpret_cast<u64*>(b.out_values)[j] = at;
      at += counts[j];
    }
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                       \
  WARPHASH_ENTRY(widen, warphash::Widen)             \
  WARPHASH_ENTRY(narrow, warphash::Narrow)           \
  WARPHASH_ENTRY(fingerprint, warphash::Fingerprint) \
  WARPHASH_ENTRY(match, warphash::Match)             \
  WARPHASH_ENTRY(gather, warphash::Gather)           \
  WARPHASH_ENTRY(scatter, warphash::Scatter)         \
  WARPHASH_ENTRY(merge, warphash::Merge)             \
  WARPHASH_ENTRY(chunk_sums, warphash::ChunkSums)    \
  WARPHASH_ENTRY(offsets, warphash::Offsets)
