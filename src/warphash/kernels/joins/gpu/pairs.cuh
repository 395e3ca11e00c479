// The pairs of a join on a GPU: a lane writes one pair, however many rows a key has.
//
//   count_pairs  each element -> how many pairs it has
//   tiles        tiles of 32 pairs -> the element that the first pair of each belongs to
//   emit_pairs   each pair -> its element, and the row
//
// If no key has several rows, joins/gpu/hits.cuh takes less time.
//
// Layout. The pairs of element i have the places from starts[i] on (core/gpu/owners/owners.cuh). The k-th of them has
// the k-th row of the key (joins/lists.cuh).
//
// Protocol. The host sums up the counts, takes as much memory as there are pairs, and launches the other two. They read
// what earlier launches wrote, and write places of their own. Nothing is atomic.
#pragma once
#include "core/gpu/batch_tiles.cuh"
#include "core/gpu/owners/owners.cuh"
#include "core/straight.cuh"
#include "joins/lists.cuh"

namespace warphash {

struct CountPairs : Straight<RowLists, TilePairBatch> {
  WARPHASH_FN static bool start(const RowLists& t, const TilePairBatch& b, u64 i, State&) {
    reinterpret_cast<u32*>(b.counts)[i] = static_cast<u32>(pairs_of(t, b, code_at(b, i)));
    return false;
  }
};

struct FirstsOfTiles : Straight<RowLists, TilePairBatch> {
  WARPHASH_FN static bool start(const RowLists&, const TilePairBatch& b, u64 tile, State&) {
    note_owner_of_tile(b.starts, b.elements, b.firsts, tile);
    return false;
  }
};

template <class Out>
struct EmitPairs {
  using Table = RowLists;
  using Batch = TilePairBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 128;

  WARPHASH_FN static void run(const RowLists& t, const TilePairBatch& b) {
    const Owners owners(b.starts, b.elements, b.firsts, b.n);
    for (u64 place = thread_in_grid(); place - lane() < b.n; place += threads_in_grid()) {
      const Owner owner = owner_of(owners, place);
      if (place >= b.n) continue;
      const u32* const list = list_of(t, code_at(b, owner.element));
      reinterpret_cast<Out*>(b.out_left)[place] = static_cast<Out>(owner.element);
      reinterpret_cast<Out*>(b.out_right)[place] = reinterpret_cast<const i32*>(t.rows)[*list + (place - owner.begin)];
    }
  }
};

}  // namespace warphash
