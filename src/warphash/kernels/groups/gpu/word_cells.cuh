// Dense numbers for the distinct words of a batch on a GPU: as groups/number.cuh, with cells that keep the words.
//
//   claim_words4, claim_words8  each element -> the cell of its key; the cell keeps the first element of the key
//   mark_words                  as mark_firsts
//   rank_words                  each cell -> the number of its key, in an array beside the cells, for spread
//   find_words4, find_words8    each element -> the first element of its key among those that claimed, or -1
//
// Layout. `cell_count` cells to which words are hashed, in whole lines, and behind them a line whose first cell is that
// of the word ~0. At first all bytes are ones.
//
//   byte  0         8           12          16
//         +---------+-----------+-----------+
//         |   key   |   first   |   ones    |
//         +---------+-----------+-----------+
//   key    the word, zero-extended; ~0: vacant, or in the cell behind the others
//   first  ~0, or an element of the key, at last its first one
//
// Protocol of claim_words:
//   1. Probe line by line, from the line of 64 bytes on that the hash of the word names. A group of four lanes reads a
//      line for each of them, a cell each. The first vacant cell is claimed by a compare-and-swap (relaxed) of the
//      whole cell, with the key and the element; if another key was faster, the next one. Where no atomic swaps 16
//      bytes, the key alone is swapped; the element follows as in step 2.
//   2. In a cell of the word, the least element stays, by an atomic minimum (relaxed).
// Nobody changes a key that is there, and `first` only falls, so the nearest cache may answer with a cell as it was
// before (load_near): a cell that was vacant is swapped in vain, and a `first` that was greater is lowered in vain.
// The rest of the protocol is that of groups/number.cuh. The keys of a batch may be copies in another order
// (groups/gpu/word_parts.cuh); then `rows` tells the elements, and places are those of the copies.
//
// find_words reads cells that earlier launches wrote. A vacant cell ends its probe.
//
// Why. A probe reads 16 bytes: the key, and the element that the key has by then. Cells with elements alone send each
// probe to the row of that element: 100 M words of 10 M keys took 5.9 ms so, and 3.4 with these cells (H200).
//
// Why lines. A warp waits for the longest probe of its lanes. Cell by cell, that has some eight looks, one after the
// other, where half of the cells are in use; line by line, two. A lane that reads all cells of its line asks the cache
// four times.
//
// Why barriers. Behind probes of unlike lengths, the lanes of a warp go on apart. Left alone, 7 of 32 ran at a time,
// and find_words took twice as long (docs/performance/joins.md).
#pragma once
#include "groups/gpu/rounds.cuh"

namespace warphash {

struct alignas(16) WordCell {
  u64 key;
  u32 first, ones;
};

constexpr u64 kVacantKey = ~0ull;
constexpr u32 kCellsOfLine = 4;

struct InWordCells {
  using Table = WordCells;
  WARPHASH_FN static WordCell& at(const WordCells& t, u64 cell) { return reinterpret_cast<WordCell*>(t.cells)[cell]; }
  WARPHASH_FN static u32& first(const WordCells& t, u64 cell) { return at(t, cell).first; }
};

WARPHASH_FN u64 hash_of_word(const WordCells& t, u64 key) { return mix(key ^ t.salt); }

// The cell as it was before it was claimed, if it was vacant.
WARPHASH_FN Halves claim_cell(WordCell& cell, u64 key, u32 element) {
  if constexpr (kSwaps16Bytes)
    return compare_exchange_halves(reinterpret_cast<Halves*>(&cell), {kVacantKey, ~0ull},
                                   {key, 0xffffffffull << 32 | element});
  const u64 before = compare_exchange_word(&cell.key, kVacantKey, key);
  if (before == kVacantKey) atomic_min(&cell.first, element);
  return {before, ~0ull};
}

// What a lane learns of the line of its word: which cells have the word, which are vacant, and the element of the cell
// that has the word.
struct LookAtLine {
  u32 hits = 0, vacant = 0, element = 0;
};

// The probe of a word, by lines. All lanes of a warp call the constructor and look().
struct WordProbe {
  u64 key;
  u32 line;  // its number
  u32 looks = 0;

  WARPHASH_FN WordProbe(const WordCells& t, u64 key_)
      : key(key_),
        line(static_cast<u32>((key == kVacantKey ? t.cell_count : multiply_high(hash_of_word(t, key), t.cell_count)) /
                              kCellsOfLine)) {}

  // A group of lanes reads the line of each of its lanes that asks, a cell each. All loads are under way before the first
  // is waited for.
  WARPHASH_FN LookAtLine look(const WordCells& t, bool asks) const {
    const u32 rank = lane() % kCellsOfLine, group = lane() - rank;
    Halves cells[kCellsOfLine];
#pragma unroll
    for (u32 owner = 0; owner < kCellsOfLine; ++owner) {
      const u32 from = shuffle(asks ? line : 0u, owner, kCellsOfLine);
      cells[owner] = load_near(reinterpret_cast<const Halves*>(&InWordCells::at(t, u64{kCellsOfLine} * from + rank)));
    }
    LookAtLine mine;
#pragma unroll
    for (u32 owner = 0; owner < kCellsOfLine; ++owner) {
      const u64 wanted = shuffle(key, owner, kCellsOfLine);
      const u32 hits = ballot(cells[owner].low == wanted) >> group & kAllCells;
      const u32 vacant = ballot(cells[owner].low == kVacantKey) >> group & kAllCells;
      const u32 element = shuffle(static_cast<u32>(cells[owner].high),
                                  first_bit(hits | 1u << kCellsOfLine) % kCellsOfLine, kCellsOfLine);
      if (rank == owner) mine = {hits, vacant, element};
    }
    return mine;
  }
  // False if the probe has been long enough.
  WARPHASH_FN bool goes_on(const WordCells& t) {
    line = (line + 1) * u64{kCellsOfLine} < t.cell_count ? line + 1 : 0;
    return ++looks < kMostProbes / kCellsOfLine;
  }

 private:
  static constexpr u32 kAllCells = (1u << kCellsOfLine) - 1;
};

// The words of a batch, in rounds. All lanes of a warp look for their words until none asks.
template <class Word>
struct OverWords : OverTilesOfRounds {
  using Table = WordCells;
  using Batch = NumberBatch;
  static constexpr u32 kBlocks = 3;

  // `settle` is called with an element, its probe and a look at the probe's line, until it returns true.
  template <class Settle>
  WARPHASH_FN static void for_each(const WordCells& t, const NumberBatch& b, const Settle& settle) {
    const u64 begin = block() * kRoundTile + thread_in_block();
    for (u32 round = 0; round < kRoundTile; round += kRoundThreads) {
      const u64 i = begin + round;
      bool asks = i < b.n;
      WordProbe probe(t, asks ? load_once(reinterpret_cast<const Word*>(b.keys) + i) : Word{});
      while (ballot(asks)) {
        const LookAtLine seen = probe.look(t, asks);
        if (asks) asks = !settle(i, probe, seen);
        warp_barrier();
      }
    }
  }
};

template <class Word>
struct ClaimWords : OverWords<Word> {
  WARPHASH_FN static void run(const WordCells& t, const NumberBatch& b) {
    u32 claimed = 0;
    OverWords<Word>::for_each(t, b, [&](u64 i, WordProbe& probe, const LookAtLine& seen) {
      const u32 element = b.rows ? load_once(reinterpret_cast<const u32*>(b.rows) + i) : static_cast<u32>(i);
      const u32 found = place(t, probe, seen, element, claimed);
      if (found != kNowhere) {
        if (b.places) place_of(b, i) = probe.line * kCellsOfLine + found;
        return true;
      }
      if (probe.goes_on(t)) return false;
      atomic_add(&report_of(b)->unplaced, 1ull);
      return true;
    });
    claimed = warp_sum(claimed);
    if (lane() == 0 && claimed)
      atomic_add(&count_line(b, thread_in_grid() / kWarpLanes).changed, static_cast<u64>(claimed));
  }

 private:
  // Steps 1 and 2: which cell of the line is that of the word, or kNowhere.
  WARPHASH_FN static u32 place(const WordCells& t, const WordProbe& probe, const LookAtLine& seen, u32 element,
                               u32& claimed) {
    const u64 line = u64{probe.line} * kCellsOfLine;
    u32 found = seen.hits ? first_bit(seen.hits) : kNowhere, first = seen.element;
    for (u32 vacant = seen.hits ? 0 : seen.vacant; vacant && found == kNowhere; vacant &= vacant - 1) {
      const u32 cell = first_bit(vacant);
      const Halves before = claim_cell(InWordCells::at(t, line + cell), probe.key, element);
      if (before.low == kVacantKey) return ++claimed, cell;
      if (before.low == probe.key) found = cell, first = static_cast<u32>(before.high);
    }
    if (found != kNowhere && first > element) atomic_min(&InWordCells::first(t, line + found), element);
    return found;
  }
};

struct RankWords : Straight<WordCells, NumberBatch> {
  WARPHASH_FN static bool start(const WordCells& t, const NumberBatch& b, u64 cell, State&) {
    const u32 first = InWordCells::first(t, cell);
    if (first != kVacantCell) reinterpret_cast<u32*>(t.numbers)[cell] = number_of_first(b, first);
    return false;
  }
};

template <class Word>
struct FindWords : OverWords<Word> {
  WARPHASH_FN static void run(const WordCells& t, const NumberBatch& b) {
    OverWords<Word>::for_each(t, b, [&](u64 i, WordProbe& probe, const LookAtLine& seen) {
      if (!seen.hits && !seen.vacant && probe.goes_on(t)) return false;
      answer(b, i, seen.hits ? static_cast<i32>(seen.element) : -1);  // of the word ~0, if it is not there: -1
      return true;
    });
  }

 private:
  WARPHASH_FN static void answer(const NumberBatch& b, u64 i, i32 found) {
    if (b.number_bytes == 8)
      store_once(reinterpret_cast<i64*>(b.numbers) + i, static_cast<i64>(found));
    else
      store_once(reinterpret_cast<i32*>(b.numbers) + i, found);
  }
};

}  // namespace warphash

#define WARPHASH_WORD_NUMBER_ENTRIES                                                          \
  WARPHASH_ENTRY(claim_words4, warphash::ClaimWords<warphash::u32>)                           \
  WARPHASH_ENTRY(claim_words8, warphash::ClaimWords<warphash::u64>)                           \
  WARPHASH_ENTRY(mark_words, warphash::InRounds<warphash::MarkFirsts<warphash::InWordCells>>) \
  WARPHASH_ENTRY(rank_words, warphash::InRounds<warphash::RankWords>)                         \
  WARPHASH_ENTRY(find_words4, warphash::FindWords<warphash::u32>)                             \
  WARPHASH_ENTRY(find_words8, warphash::FindWords<warphash::u64>)
