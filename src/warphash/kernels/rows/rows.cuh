// Rows of bytes: kernels between the keys and values of the caller and the words of a slot. No design changes these
// kernels.
//
//   widen        rows -> words of 4 or 8 bytes, or longer rows, zero-extended
//   narrow       words -> rows
//   fingerprint  rows of any width -> 64-bit fingerprints, salted
//   sample       rows -> rows at random places
//   sketch       rows -> registers that tell how many different rows there are
//   list_flagged the numbers of the elements whose flag is `listed_flag`
//   match        clears the flag of an element whose fingerprint is in the table under another key; lists the others
//   gather       stored rows -> rows
//   number_rows  writes the row numbers 0, 1, 2, ...
//   claim_rows   chooses one element of each new key, and ranks the chosen ones
//   take_rows    gives each chosen element a free row
//   scatter      rows of the chosen elements -> stored rows
//   share_rows   gives the other elements of a new key its row; applies their upserts to the new value
//   overwrite    values of elements whose keys were there -> stored rows
//   merge        overwrites stored values of one word, or combines stored numbers, of keys that were there
//   free_rows    pushes the rows of erased keys on the free list
//   chunk_sums   counts (u32 or u64, `length` of them) -> their sum over each chunk (u64)
//   offsets      counts, and where each chunk begins -> where each count begins (u32 or u64)
//   flag_sums    flags (u8, `length` of them) -> how many of each chunk are `listed_flag` (u64)
//   list_chunks  the numbers of these elements (u32), ascending, from where each chunk begins
//
// Layout. The caller's rows are packed, `row_bytes` each. Stored rows lie behind each other, `stored_bytes` each.
// `numbers` has a word of 64 bits for each element:
//
//   bit  63     62       61                                 0
//        +------+--------+-----------------------------------+
//        | done | shares | row number, rank or element       |
//        +------+--------+-----------------------------------+
//   done    the value of the element is not to be written to a stored row that was there before: another element of its
//           key writes that row, or the key is new
//   shares  the key is new, and the low bits are the number of the element that was chosen for it
//
// `WideRows` (storage/wide_rows.py) keeps keys or values wider than a word: a slot then holds the fingerprint of a
// key and the number of its row. The free list is a stack of row numbers (u64). The host knows how many rows are on the
// stack, and how many were ever used (`end`).
//
//             +-----+-----+-----+ - - +            +-------+-------+-------+ - - - - +
//   free list | 17  |  4  | 90  |     |   key rows | row 0 | row 1 | row 2 |         |   value rows likewise
//             +-----+-----+-----+ - - +            +-------+-------+-------+ - - - - +
//                          top: taken first                             end: taken when the stack is empty
//
// An insert of new keys.
//   1. A find writes a row number and a flag (1: the fingerprint is in the table) for each element.
//   2. claim_rows compares the stored key of each found element with the element's key. An element that was not found
//      claims its fingerprint in a hash table of `cell_count` cells: a compare-and-swap (relaxed) of an empty cell. The
//      winner gets flag 1 (kChanged) and a rank, from one ticket counter (Report::winners), an atomic for each block. A
//      loser compares its key with the winner's and notes the winner. Two different keys of one fingerprint are counted
//      in CountLine::mismatches. Where elements overwrite values of more than a word, found ones claim too: one of each
//      key writes.
//   3. The host reads the report: how many rows to take, and whether to draw another salt. It allocates what is missing.
//   4. take_rows turns ranks into row numbers: rank r takes the r-th row from the top of the stack, or row end + r -
//      (rows on the stack). It writes the fingerprints and row numbers of the winners in the order of ranks, if there
//      are other elements.
//   5. scatter writes keys and values of the winners. share_rows combines the values of their losers. No slot leads
//      there yet.
//   6. The slots are entered. overwrite and merge change the values of keys that were there.
// An erase lists the elements that match, erases these from the slots, and pushes the rows of the erased ones: a ticket
// counter (Report::winners), an atomic for each block.
// All accesses to claims and counters are relaxed: these publish nothing, and the end of a kernel orders one step
// before the next.
//
// Why claims. A row is taken for a key and not for an element, so no row has to be given back. Different keys of one
// fingerprint are found before the table changes. And the slots are entered as a batch of distinct, absent keys. A cell
// has 32 bits of the fingerprint beside the element's number, so that a probe seldom reads another element's
// fingerprint.
//
// Two keys of one fingerprint never live in the table together: the store draws another salt (core/fingerprint.cuh).
#pragma once
#include "core/bytes.cuh"
#include "core/fingerprint.cuh"
#include "core/straight.cuh"
#include "core/value.cuh"
#include "rows/abi.cuh"

namespace warphash {

constexpr u64 kValueDone = 1ull << 63, kSharesRow = 1ull << 62, kRowNumber = kSharesRow - 1;

// Row i of the caller's.
template <class Batch>
WARPHASH_FN u8* row_of(const Batch& b, u64 i) {
  return reinterpret_cast<u8*>(b.rows) + i * b.row_bytes;
}
WARPHASH_FN u8* stored_row(const StoredRows& stored, u64 row) {
  return reinterpret_cast<u8*>(stored.rows) + row * stored.stored_bytes;
}
WARPHASH_FN u64& number_of(const RowBatch& b, u64 i) { return reinterpret_cast<u64*>(b.numbers)[i]; }
WARPHASH_FN u64 row_number(const RowBatch& b, u64 i) { return number_of(b, i) & kRowNumber; }
WARPHASH_FN u8& flag_of(const RowBatch& b, u64 i) { return reinterpret_cast<u8*>(b.flags)[i]; }
WARPHASH_FN bool flagged(const RowBatch& b, u64 i) { return !b.flags || flag_of(b, i) == kChanged; }
// Whether the key of an element was there, and the stored value of the key is to be changed by this element.
WARPHASH_FN bool changes_value(const RowBatch& b, u64 i) { return !flagged(b, i) && !(number_of(b, i) & kValueDone); }

struct RowComparison {
  const u8* a;
  const u8* b;
  u64 bytes;
  bool* same;
  template <class Word>
  WARPHASH_FN void by() const {
    if constexpr (sizeof(Word) > 8) {
      RowComparison{a, b, bytes, same}.template by<u64>();
    } else {
      Word difference = 0;
      for (u64 j = 0; j < bytes; j += sizeof(Word))
        difference |= *reinterpret_cast<const Word*>(a + j) ^ *reinterpret_cast<const Word*>(b + j);
      *same = difference == 0;
    }
  }
};
WARPHASH_FN bool equal_rows(const u8* a, const u8* b, u64 bytes) {
  bool same = false;
  by_words(reinterpret_cast<u64>(a) | reinterpret_cast<u64>(b) | bytes, RowComparison{a, b, bytes, &same});
  return same;
}

WARPHASH_FN void copy_extended(u8* to, const u8* from, u64 bytes, u64 longer) {
  for (u64 j = 0; j < longer; ++j) to[j] = j < bytes ? from[j] : 0;
}

struct Widen : Straight<StoredRows, WordBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const WordBatch& b, u64 i, State&) {
    const u8* row = row_of(b, i);
    if (b.word_bytes == 4)
      reinterpret_cast<u32*>(b.words)[i] = static_cast<u32>(read_word(row, b.row_bytes));
    else if (b.word_bytes == 8)
      reinterpret_cast<u64*>(b.words)[i] = read_word(row, b.row_bytes);
    else
      copy_extended(reinterpret_cast<u8*>(b.words) + i * b.word_bytes, row, b.row_bytes, b.word_bytes);
    return false;
  }
};

struct Narrow : Straight<StoredRows, WordBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const WordBatch& b, u64 i, State&) {
    const u8* word = reinterpret_cast<const u8*>(b.words) + i * b.word_bytes;
    u8* row = row_of(b, i);
    for (u64 j = 0; j < b.row_bytes; ++j) row[j] = word[j];
    return false;
  }
};

struct Fingerprint : Straight<StoredRows, FingerprintBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const FingerprintBatch& b, u64 i, State&) {
    reinterpret_cast<u64*>(b.fingerprints)[i] = fingerprint_of(row_of(b, i), b.row_bytes, b.salt);
    return false;
  }
};

// Copies a row from a place that depends on the number of the element and on `row_count` alone.
struct Sample : Straight<StoredRows, SampleBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const SampleBatch& b, u64 i, State&) {
    const u64 place = multiply_high(mix(i + 1), b.row_count);
    copy_row(reinterpret_cast<u8*>(b.out_rows) + i * b.row_bytes,
             reinterpret_cast<const u8*>(b.rows) + place * b.row_bytes, b.row_bytes);
    return false;
  }
};

// Enters rows into a sketch: each of its 2^13 registers (u32) keeps the greatest rank of the rows that
// fall to it; the rank is the number of trailing zeros in the upper half of a fingerprint, plus one. The greatest rank
// tells how many different rows there were (Flajolet et al., HyperLogLog, 2007). Relaxed: a register publishes nothing,
// and only rises.
constexpr u32 kSketchBits = 13;

struct Sketch : Straight<StoredRows, FingerprintBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const FingerprintBatch& b, u64 i, State&) {
    const u64 print = fingerprint_of(row_of(b, i), b.row_bytes, b.salt);
    u32* const at = reinterpret_cast<u32*>(b.registers) + (print & ((1u << kSketchBits) - 1));
    const u32 rest = static_cast<u32>(print >> 32);
    const u32 rank = rest ? first_bit(rest) + 1 : 33;
    u32 seen = load_relaxed(at);
    while (seen < rank) {
      const u32 before = compare_exchange_word(at, seen, rank);
      if (before == seen) break;
      seen = before;
    }
    return false;
  }
};

using OnRows = Straight<StoredRows, RowBatch>;

// A task that lists elements in Report::winners.
struct ListsElements : OnRows {
  static constexpr int kLists = 1;
  struct State {
    u32 element;
    bool listed;
  };
  using Entry = u32;
  WARPHASH_FN static u64* length(const Batch& b, int) { return b.report ? &report_of(b)->winners : nullptr; }
  WARPHASH_FN static bool lists(int, const State& s) { return s.listed; }
  WARPHASH_FN static Entry entry(const State& s) { return s.element; }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}
};

// Lists the elements whose flag is `listed_flag`.
struct ListFlagged : ListsElements {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State& s) {
    s = {static_cast<u32>(i), flag_of(b, i) == b.listed_flag};
    return false;
  }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, Entry e) { reinterpret_cast<u32*>(b.list)[place] = e; }
};

struct Match : ListsElements {
  WARPHASH_FN static const void* hint(const Table& t, const Batch& b, u64 i) {
    return flagged(b, i) ? stored_row(t, row_number(b, i)) : nullptr;
  }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const bool found = flagged(b, i);
    s = {static_cast<u32>(i), found && equal_rows(stored_row(t, row_number(b, i)), row_of(b, i), b.row_bytes)};
    if (found && !s.listed) flag_of(b, i) = kPresent;
    return false;
  }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, Entry e) { reinterpret_cast<u32*>(b.list)[place] = e; }
};

struct Gather : OnRows {
  WARPHASH_FN static const void* hint(const Table& t, const Batch& b, u64 i) {
    return flagged(b, i) ? stored_row(t, row_number(b, i)) : nullptr;
  }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    const u8* from = flagged(b, i) ? stored_row(t, row_number(b, i)) : reinterpret_cast<const u8*>(b.default_row);
    copy_row(reinterpret_cast<u8*>(b.out_rows) + i * b.row_bytes, from, b.row_bytes);
    return false;
  }
};

struct NumberRows : OnRows {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    number_of(b, i) = i;
    return false;
  }
};

// ---- updates
struct ClaimRows : ListsElements {
  static constexpr bool kCounts = true;
  static constexpr u64 kEmptyCell = ~0ull;  // no element has this number
  struct State : ListsElements::State {
    bool shared;  // another key has this fingerprint, too
  };
  WARPHASH_FN static u64 fingerprint_of(const Batch& b, u64 i) {
    return reinterpret_cast<const u64*>(b.fingerprints)[i];
  }
  WARPHASH_FN static u64* cell(const Batch& b, u64 at) { return reinterpret_cast<u64*>(b.cells) + at; }
  WARPHASH_FN static u64 home(const Batch& b, u64 fingerprint) {
    return multiply_high(mix(fingerprint ^ b.random), b.cell_count);
  }
  WARPHASH_FN static const void* hint(const Table& t, const Batch& b, u64 i) {
    if (flag_of(b, i) == kChanged) return stored_row(t, row_number(b, i));
    return cell(b, home(b, fingerprint_of(b, i)));
  }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.element = static_cast<u32>(i);
    s.listed = s.shared = false;
    const bool found = flag_of(b, i) == kChanged;
    if (found) {
      s.shared = !equal_rows(stored_row(t, row_number(b, i)), row_of(b, i), b.row_bytes);
      flag_of(b, i) = kPresent;
      if (s.shared || !b.claims_found) return false;
    }
    const u64 fingerprint = fingerprint_of(b, i), mine = fingerprint << 32 | i;
    for (u64 at = home(b, fingerprint);; at = at + 1 < b.cell_count ? at + 1 : 0) {
      const u64 claim = compare_exchange_word(cell(b, at), kEmptyCell, mine);
      if (claim == kEmptyCell) {
        s.listed = !found;
        return false;
      }
      const u64 owner = claim & 0xffffffffu;
      if ((claim ^ mine) >> 32 || fingerprint_of(b, owner) != fingerprint) continue;
      s.shared = !equal_rows(row_of(b, owner), row_of(b, i), b.row_bytes);
      number_of(b, i) = found ? number_of(b, i) | kValueDone : owner | kSharesRow | kValueDone;
      return false;
    }
  }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, Entry e) {
    number_of(b, e) = place;
    flag_of(b, e) = kChanged;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    tally.mismatches += live && s.shared;
  }
};

struct TakeRows : OnRows {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State&) {
    if (!flagged(b, i)) return false;
    const u64 rank = number_of(b, i), free = b.free_rows;
    const u64 row = rank < free ? reinterpret_cast<const u64*>(b.free_list)[free - 1 - rank] : b.end + rank - free;
    number_of(b, i) = row;
    if (b.out_fingerprints) {
      reinterpret_cast<u64*>(b.out_fingerprints)[rank] = reinterpret_cast<const u64*>(b.fingerprints)[i];
      reinterpret_cast<u64*>(b.out_numbers)[rank] = row;
    }
    return false;
  }
};

struct Scatter : OnRows {
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    if (flagged(b, i)) copy_row(stored_row(t, row_number(b, i)), row_of(b, i), b.row_bytes);
    return false;
  }
};

// A value that is overwritten is one word. A value that is combined is one number of 4 or 8 bytes, or several: each is
// combined by an atomic of its own.
WARPHASH_FN void merge_value(const StoredRows& stored, const RowBatch& b, u64 i, u64 row) {
  const u64 width = b.op == kReplace ? b.row_bytes : kind_bits(b.kind) / 8;
  const u8* const given = row_of(b, i);
  u8* const at = stored_row(stored, row);
  for (u64 j = 0; j < b.row_bytes; j += width) {
    const u64 operand = read_word(given + j, width);
    if (width <= 4)
      combine(reinterpret_cast<u32*>(at + j), static_cast<u32>(operand), b.op, b.kind);
    else
      combine(reinterpret_cast<u64*>(at + j), operand, b.op, b.kind);
  }
}

// The word of a chosen element is not written here, so another element may read it.
struct ShareRows : OnRows {
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    if (!(number_of(b, i) & kSharesRow)) return false;
    const u64 row = row_number(b, row_number(b, i));
    number_of(b, i) = row | kValueDone;
    if (b.op) merge_value(t, b, i, row);
    return false;
  }
};

struct Overwrite : OnRows {
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    if (changes_value(b, i)) copy_row(stored_row(t, row_number(b, i)), row_of(b, i), b.row_bytes);
    return false;
  }
};

struct Merge : OnRows {
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    if (changes_value(b, i)) merge_value(t, b, i, row_number(b, i));
    return false;
  }
};

// ---- erase
struct FreeRows : ListsElements {
  WARPHASH_FN static bool start(const Table&, const Batch& b, u64 i, State& s) {
    s = {static_cast<u32>(i), flagged(b, i)};
    return false;
  }
  WARPHASH_FN static void enter(const Batch& b, int, u64 place, Entry e) {
    reinterpret_cast<u64*>(b.free_list)[b.free_rows + place] = row_number(b, e);
  }
};

// One thread sums a chunk. On a GPU a warp does (rows/gpu/scans.cuh).
constexpr u64 kChunk = 256;

WARPHASH_FN u64 count_at(const CountBatch& b, u64 j) {
  if (b.count_bytes == 8) return reinterpret_cast<const u64*>(b.counts)[j];
  const u32 count = reinterpret_cast<const u32*>(b.counts)[j];
  return b.of_bits ? bit_count(count) : count;
}
WARPHASH_FN void set_offset(const CountBatch& b, u64 j, u64 offset) {
  if (b.offset_bytes == 8)
    reinterpret_cast<u64*>(b.offsets)[j] = offset;
  else
    reinterpret_cast<u32*>(b.offsets)[j] = static_cast<u32>(offset);
}

struct ChunkSums : Straight<StoredRows, CountBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const CountBatch& b, u64 i, State&) {
    u64 sum = 0;
    for (u64 j = i * kChunk; j < (i + 1) * kChunk && j < b.length; ++j) sum += count_at(b, j);
    reinterpret_cast<u64*>(b.sums)[i] = sum;
    return false;
  }
};

struct Offsets : Straight<StoredRows, CountBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const CountBatch& b, u64 i, State&) {
    u64 at = reinterpret_cast<const u64*>(b.starts)[i];
    for (u64 j = i * kChunk; j < (i + 1) * kChunk && j < b.length; ++j) {
      const u64 count = count_at(b, j);
      set_offset(b, j, at);
      at += count;
    }
    return false;
  }
};

struct FlagSums : Straight<StoredRows, CountBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const CountBatch& b, u64 i, State&) {
    const u8* flags = reinterpret_cast<const u8*>(b.flags);
    u64 sum = 0;
    for (u64 j = i * kChunk; j < (i + 1) * kChunk && j < b.length; ++j) sum += flags[j] == b.listed_flag;
    reinterpret_cast<u64*>(b.sums)[i] = sum;
    return false;
  }
};

struct ListChunks : Straight<StoredRows, CountBatch> {
  WARPHASH_FN static bool start(const StoredRows&, const CountBatch& b, u64 i, State&) {
    const u8* flags = reinterpret_cast<const u8*>(b.flags);
    u32* out = reinterpret_cast<u32*>(b.list) + reinterpret_cast<const u64*>(b.starts)[i];
    for (u64 j = i * kChunk; j < (i + 1) * kChunk && j < b.length; ++j)
      if (flags[j] == b.listed_flag) *out++ = static_cast<u32>(j);
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                        \
  WARPHASH_ENTRY(widen, warphash::Widen)              \
  WARPHASH_ENTRY(narrow, warphash::Narrow)            \
  WARPHASH_ENTRY(fingerprint, warphash::Fingerprint)  \
  WARPHASH_ENTRY(sample, warphash::Sample)            \
  WARPHASH_ENTRY(sketch, warphash::Sketch)            \
  WARPHASH_ENTRY(list_flagged, warphash::ListFlagged) \
  WARPHASH_ENTRY(match, warphash::Match)              \
  WARPHASH_ENTRY(gather, warphash::Gather)            \
  WARPHASH_ENTRY(number_rows, warphash::NumberRows)   \
  WARPHASH_ENTRY(claim_rows, warphash::ClaimRows)     \
  WARPHASH_ENTRY(take_rows, warphash::TakeRows)       \
  WARPHASH_ENTRY(scatter, warphash::Scatter)          \
  WARPHASH_ENTRY(share_rows, warphash::ShareRows)     \
  WARPHASH_ENTRY(overwrite, warphash::Overwrite)      \
  WARPHASH_ENTRY(merge, warphash::Merge)              \
  WARPHASH_ENTRY(free_rows, warphash::FreeRows)       \
  WARPHASH_ENTRY(chunk_sums, warphash::ChunkSums)     \
  WARPHASH_ENTRY(offsets, warphash::Offsets)          \
  WARPHASH_ENTRY(flag_sums, warphash::FlagSums)       \
  WARPHASH_ENTRY(list_chunks, warphash::ListChunks)
