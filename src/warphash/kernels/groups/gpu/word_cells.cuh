// Dense numbers for the distinct words of a batch on a GPU: as groups/number.cuh, with cells that keep the words.
//
//   claim_words4, claim_words8  each element -> the cell of its key; the cell keeps the first element of the key
//   mark_words                  as mark_firsts
//   rank_words                  each cell -> the number of its key, in an array beside the cells, for spread
//
// Layout. `cell_count` cells to which words are hashed, in whole lines, and one more for the word ~0. At first all bytes
// are ones.
//
//   byte  0         8           12          16
//         +---------+-----------+-----------+
//         |   key   |   first   |   ones    |
//         +---------+-----------+-----------+
//   key    the word, zero-extended; ~0: vacant, or in the cell behind the others
//   first  ~0, or an element of the key, at last its first one
//
// Protocol of claim_words:
//   1. Probe from the cell that the hash of the word names: the four cells of its line of 64 bytes, then those of the
//      next line. A vacant cell is claimed by a compare-and-swap (relaxed) of the whole cell, with the key and the
//      element. Where no atomic swaps 16 bytes, the key alone is swapped; the element follows as in step 2.
//   2. In a cell of the word, the least element stays, by an atomic minimum (relaxed).
// Nobody changes a key that is there, and `first` only falls, so the nearest cache may answer with a cell as it was
// before (load_near): a cell that was vacant is swapped in vain, and a `first` that was greater is lowered in vain.
// The rest of the protocol is that of groups/number.cuh. The keys of a batch may be copies in another order
// (groups/gpu/word_parts.cuh); then `rows` tells the elements, and places are those of the copies.
//
// Why. A probe reads 16 bytes: the key, and the element that the key has by then. Cells with elements alone send each
// probe to the row of that element: 100 M words of 10 M keys took 5.9 ms so, and 3.4 with these cells (H200).
#pragma once
#include "groups/gpu/rounds.cuh"

namespace warphash {

struct alignas(16) WordCell {
  u64 key;
  u32 first, ones;
};

constexpr u64 kVacantKey = ~0ull;
constexpr u32 kCellsOfLine = 4;

WARPHASH_FN u64 hash_of_word(const WordCells& t, u64 key) { return mix(key ^ t.salt); }

struct InWordCells {
  using Table = WordCells;
  WARPHASH_FN static WordCell& at(const WordCells& t, u64 cell) { return reinterpret_cast<WordCell*>(t.cells)[cell]; }
  WARPHASH_FN static u32& first(const WordCells& t, u64 cell) { return at(t, cell).first; }
};

template <class Word>
struct ClaimWords : Straight<WordCells, NumberBatch> {
  struct State {
    bool claimed;
  };

  // The cell as it was before it was claimed, if it was vacant.
  WARPHASH_FN static Halves claim(WordCell& cell, u64 key, u32 element) {
    if constexpr (kSwaps16Bytes)
      return compare_exchange_halves(reinterpret_cast<Halves*>(&cell), {kVacantKey, ~0ull},
                                     {key, 0xffffffffull << 32 | element});
    const u64 before = compare_exchange_word(&cell.key, kVacantKey, key);
    if (before == kVacantKey) atomic_min(&cell.first, element);
    return {before, ~0ull};
  }

  WARPHASH_FN static bool start(const WordCells& t, const NumberBatch& b, u64 i, State& s) {
    const u64 key = load_once(reinterpret_cast<const Word*>(b.keys) + i);
    const u32 element = b.rows ? load_once(reinterpret_cast<const u32*>(b.rows) + i) : static_cast<u32>(i);
    const u64 home = key == kVacantKey ? t.cell_count : multiply_high(hash_of_word(t, key), t.cell_count);
    u64 line = home - home % kCellsOfLine;
    for (u32 probes = 0; probes < kMostProbes; ++probes) {
      const u64 cell = line + (home + probes) % kCellsOfLine;
      if ((probes + 1) % kCellsOfLine == 0) line = line + kCellsOfLine < t.cell_count ? line + kCellsOfLine : 0;
      WordCell& at = InWordCells::at(t, cell);
      Halves seen = load_near(reinterpret_cast<const Halves*>(&at));
      s.claimed = false;
      if (seen.low == kVacantKey && key != kVacantKey) {
        seen = claim(at, key, element);
        s.claimed = seen.low == kVacantKey;
      }
      if (!s.claimed && seen.low != key) continue;
      if (!s.claimed && static_cast<u32>(seen.high) > element) atomic_min(&at.first, element);
      if (b.places) place_of(b, i) = static_cast<u32>(cell);
      return false;
    }
    s.claimed = false;
    atomic_add(&report_of(b)->unplaced, 1ull);
    return false;
  }

  // By warps: a sum over the block would make its warps wait for the longest probe.
  WARPHASH_FN static void finish(const WordCells&, const NumberBatch& b, u64, State& s, bool live, Tally&) {
    const u32 claimed = bit_count(ballot(live && s.claimed));
    if (lane() == 0 && claimed)
      atomic_add(&count_line(b, thread_in_grid() / kWarpLanes).changed, static_cast<u64>(claimed));
  }
};

struct RankWords : Straight<WordCells, NumberBatch> {
  WARPHASH_FN static bool start(const WordCells& t, const NumberBatch& b, u64 cell, State&) {
    const u32 first = InWordCells::first(t, cell);
    if (first != kVacantCell) reinterpret_cast<u32*>(t.numbers)[cell] = number_of_first(b, first);
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_WORD_NUMBER_ENTRIES                                                          \
  WARPHASH_ENTRY(claim_words4, warphash::ClaimWords<warphash::u32>)                           \
  WARPHASH_ENTRY(claim_words8, warphash::ClaimWords<warphash::u64>)                           \
  WARPHASH_ENTRY(mark_words, warphash::InRounds<warphash::MarkFirsts<warphash::InWordCells>>) \
  WARPHASH_ENTRY(rank_words, warphash::InRounds<warphash::RankWords>)
