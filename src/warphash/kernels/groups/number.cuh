// Dense numbers for the distinct rows of a batch, in the order in which the rows first appear. Rows have any width.
//
//   claim         each element -> the cell of its key; the cell keeps the first element of the key
//   mark_firsts   each cell -> the bit of the element that it keeps
//   rank_firsts   each cell -> the number of its key, which takes the element's place in the cell
//   list_firsts   32 bits -> the elements whose bits are set
//   spread        each element -> the number in its cell; counts the elements of each key
//   number_all    in place of all steps behind claim, where no key repeats: each element has a key of its own
//
// A GPU takes the last steps in another way (groups/gpu/rounds.cuh).
//
// Layout.
//
//   cells   u32 array: ~0 (vacant), the number of an element, and behind rank_firsts the number of a key
//   places  u32 per element: which cell
//   bits    u32 per 32 elements, the lowest bit for the first of them: 1 for the first element of a key
//   starts  u32 per 32 elements: the ones before their bits
//
// Words on a GPU have cells that keep the key, too (groups/gpu/word_cells.cuh). Bits and starts are the same.
//
// Protocol.
//   1. claim: probe linearly from the cell that the fingerprint of the row names. A vacant cell is claimed by a
//      compare-and-swap (relaxed) with the number of the element. A cell with another element is compared with the row in
//      full, in the caller's memory. Equal: the lesser of both elements stays, by an atomic minimum (relaxed). A cell
//      changes from one element to another of the same key only, so whoever has compared with one may stop.
//   2. The end of the launch. Each cell has the least element of its key, in whatever order threads came.
//   3. mark_firsts (an atomic or, relaxed), then prefix sums of the ones (storage/selection.py): the ones before a first
//      element are the number of its key. rank_firsts writes one cell for each key, and spread reads cells.
// A probe that finds neither its key nor a vacant cell in kMostProbes cells counts in Report::unplaced: the host has
// estimated too few keys, and starts again with more cells. `claim` has written to cells and places alone until then. It
// counts the cells that it has claimed, too (CountLine::changed): as many as elements if no key repeats.
//
// Nothing but time depends on the fingerprints. No row is reserved, because cells keep elements and no rows.
//
// Why the least element and not any. So the numbers are those of a sequential walk, on each engine and for any number
// of threads. An element reads its cell and the row of the first one: two lines, of which those of frequent keys are in
// caches. Only new minima are written, and of a key with m elements in random order these are ln m on average.
//
// Why bits. A byte for each element, and a sum of 8 bytes for each, took 8.0 ms of the 12.9 in which 100 M words of 1 M
// keys were numbered (H200). The bits of 100 M elements are 12.5 MB, which stay in the second-level cache; they are set
// from the cells, of which there are as many as keys, and not from the elements.
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

// ---- first elements
WARPHASH_FN u32* bits_of(const NumberBatch& b, u32 element) { return reinterpret_cast<u32*>(b.bits) + element / 32; }
WARPHASH_FN u32 bit_of(u32 element) { return 1u << element % 32; }

// The number of the key that first appears in an element.
WARPHASH_FN u32 number_of_first(const NumberBatch& b, u32 element) {
  const u32 before = bit_count(*bits_of(b, element) & (bit_of(element) - 1));
  return reinterpret_cast<const u32*>(b.starts)[element / 32] + before;
}

// Cells give `first(t, cell)`: the word of a cell that keeps an element.
template <class Cells>
struct MarkFirsts : Straight<typename Cells::Table, NumberBatch> {
  using State = typename Straight<typename Cells::Table, NumberBatch>::State;
  WARPHASH_FN static bool start(const typename Cells::Table& t, const NumberBatch& b, u64 cell, State&) {
    const u32 element = Cells::first(t, cell);
    if (element != kVacantCell) fetch_or(bits_of(b, element), bit_of(element));
    return false;
  }
};

struct RankFirsts : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static bool start(const FirstsTable& t, const NumberBatch& b, u64 cell, State&) {
    u32& first = cells_of(t)[cell];
    if (first != kVacantCell) first = number_of_first(b, first);
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

struct NumberAll : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static bool start(const FirstsTable&, const NumberBatch& b, u64 i, State&) {
    reinterpret_cast<u32*>(b.firsts)[i] = static_cast<u32>(i);
    if (b.numbers) set_number(b, i, static_cast<u32>(i));
    if (b.counts) reinterpret_cast<u32*>(b.counts)[i] = 1;
    return false;
  }
};

struct ListFirsts : Straight<FirstsTable, NumberBatch> {
  WARPHASH_FN static bool start(const FirstsTable&, const NumberBatch& b, u64 word, State&) {
    u32* out = reinterpret_cast<u32*>(b.firsts) + reinterpret_cast<const u32*>(b.starts)[word];
    for (u32 bits = reinterpret_cast<const u32*>(b.bits)[word]; bits; bits &= bits - 1)
      *out++ = static_cast<u32>(32 * word) + first_bit(bits);
    return false;
  }
};

// ---- rows
struct RowCells {
  using Table = FirstsTable;
  WARPHASH_FN static u32& first(const FirstsTable& t, u64 cell) { return cells_of(t)[cell]; }
};

struct ClaimFirsts : Straight<FirstsTable, NumberBatch> {
  static constexpr bool kCounts = true;
  struct State {
    bool claimed;
  };
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    tally.changed += live && s.claimed;
  }
  WARPHASH_FN static bool start(const FirstsTable& t, const NumberBatch& b, u64 i, State& s) {
    const u8* const row = key_row(b, i);
    const u32 element = static_cast<u32>(i);
    u64 cell = fingerprint_of(row, b.key_bytes, t.salt) & t.cell_mask;
    for (u32 probes = 0; probes < kMostProbes; ++probes, cell = (cell + 1) & t.cell_mask) {
      u32* const at = cells_of(t) + cell;
      u32 there = load_relaxed(at);
      if (there == kVacantCell) there = compare_exchange_word(at, kVacantCell, element);
      s.claimed = there == kVacantCell;
      if (!s.claimed && there != element && !equal_rows(key_row(b, there), row, b.key_bytes)) continue;
      if (!s.claimed && there > element) atomic_min(at, element);
      if (b.places) place_of(b, i) = static_cast<u32>(cell);
      return false;
    }
    s.claimed = false;
    atomic_add(&report_of(b)->unplaced, 1ull);
    return false;
  }
};

}  // namespace warphash

// Two of the kernels for rows of any width. An engine adds the others, in its own way of going through a batch.
#define WARPHASH_ROW_NUMBER_ENTRIES            \
  WARPHASH_ENTRY(claim, warphash::ClaimFirsts) \
  WARPHASH_ENTRY(rank_firsts, warphash::RankFirsts)
