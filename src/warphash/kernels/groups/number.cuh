// Dense numbers for the distinct rows of a batch, in the order in which the rows first appear. Rows have any width.
//
//   claim         each element -> the cell of its key; the cell keeps the first element of the key
//   mark_firsts   flags the elements that their cells keep
//   rank_firsts   each flagged element -> the number of its key, which takes the element's place in the cell
//   spread        each element -> the number in its cell; counts the elements of each key
//
// Layout.
//
//   cells   u32 array: ~0 (vacant), the number of an element, and behind rank_firsts the number of a key
//   places  u32 per element: which cell
//
// Protocol.
//   1. claim: probe linearly from the cell that the fingerprint of the row names. A vacant cell is claimed by a
//      compare-and-swap (relaxed) with the number of the element. A cell with another element is compared with the row in
//      full, in the caller's memory. Equal: the lesser of both elements stays, by a compare-and-swap (relaxed). A cell
//      changes from one element to another of the same key only, so whoever has compared with one may stop.
//   2. The end of the launch. Each cell has the least element of its key, in whatever order threads came.
//   3. mark_firsts, then prefix sums of the flags (storage/selection.py): the sum before a first element is the number of
//      its key. rank_firsts writes one cell for each key, and spread reads cells.
// A probe that finds neither its key nor a vacant cell in kMostProbes cells counts in Report::unplaced: the host has
// estimated too few keys, and starts again with more cells. `claim` has written to cells and places alone until then.
//
// Nothing but time depends on the fingerprints. No row is reserved, because cells keep elements and no rows.
//
// Why the least element and not any. So the numbers are those of a sequential walk, on each engine and for any number
// of threads. An element reads its cell and the row of the first one: two lines, of which those of frequent keys are in
// caches. Only new minima are written, and of a key with m elements in random order these are ln m on average.
#pragma once
#include "core/straight.cuh"
#include "groups/abi.cuh"
#include "rows/rows.cuh"

namespace warphash {

constexpr u32 kVacantCell = ~0u, kMostProbes = 256;

WARPHASH_FN u32* cells_of(const FirstsTable& t) { return reinterpret_cast<u32*>(t.cells); }
WARPHASH_FN u32& place_of(const NumberBatch& b, u64 i) { return reinterpret_cast<u32*>(b.places)[i]; }
WARPHASH_FN const u8* key_row(const NumberBatch& b, u64 i) {
  return reinterpret_cast<const u8*>(b.keys) + i * b.key_bytes;
}
WARPHASH_FN void set_number(const NumberBatch& b, u64 i, u32 number) {
  if (b.number_bytes == 8)
    reinterpret_cast<u64*>(b.numbers)[i] = number;
  else
    reinterpret_cast<u32*>(b.numbers)[i] = number;
}

struct ClaimFirsts : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static bool start(const FirstsTable& t, const NumberBatch& b, u64 i, State&) {
    const u8* const row = key_row(b, i);
    const u32 element = static_cast<u32>(i);
    u64 cell = fingerprint_of(row, b.key_bytes, t.salt) & t.cell_mask;
    for (u32 probes = 0; probes < kMostProbes; ++probes, cell = (cell + 1) & t.cell_mask) {
      u32* const at = cells_of(t) + cell;
      u32 there = load_relaxed(at);
      if (there == kVacantCell) there = compare_exchange_word(at, kVacantCell, element);
      if (there != kVacantCell && there != element && !equal_rows(key_row(b, there), row, b.key_bytes)) continue;
      while (there != kVacantCell && there > element) {
        const u32 before = compare_exchange_word(at, there, element);
        if (before == there) break;
        there = before;
      }
      place_of(b, i) = static_cast<u32>(cell);
      return false;
    }
    atomic_add(&report_of(b)->unplaced, 1ull);
    place_of(b, i) = 0;
    return false;
  }
};

struct MarkFirsts : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static bool start(const FirstsTable& t, const NumberBatch& b, u64 i, State&) {
    reinterpret_cast<u8*>(b.flags)[i] = cells_of(t)[place_of(b, i)] == i;
    return false;
  }
};

struct RankFirsts : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static bool start(const FirstsTable& t, const NumberBatch& b, u64 i, State&) {
    if (!reinterpret_cast<const u8*>(b.flags)[i]) return false;
    const u32 number = static_cast<u32>(reinterpret_cast<const u64*>(b.starts)[i]);
    reinterpret_cast<u32*>(b.firsts)[number] = static_cast<u32>(i);
    cells_of(t)[place_of(b, i)] = number;
    return false;
  }
};

struct SpreadNumbers : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static const void* hint(const FirstsTable& t, const NumberBatch& b, u64 i) {
    return cells_of(t) + place_of(b, i);
  }
  WARPHASH_FN static bool start(const FirstsTable& t, const NumberBatch& b, u64 i, State&) {
    const u32 number = cells_of(t)[place_of(b, i)];
    if (b.numbers) set_number(b, i, number);
    if (b.counts) atomic_add(reinterpret_cast<u32*>(b.counts) + number, 1u);
    return false;
  }
};

}  // namespace warphash

// The kernels for rows of any width.
#define WARPHASH_ROW_NUMBER_ENTRIES                 \
  WARPHASH_ENTRY(claim, warphash::ClaimFirsts)      \
  WARPHASH_ENTRY(mark_firsts, warphash::MarkFirsts) \
  WARPHASH_ENTRY(rank_firsts, warphash::RankFirsts) \
  WARPHASH_ENTRY(spread, warphash::SpreadNumbers)
