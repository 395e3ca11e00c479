// All values of the groups of elements, on a GPU: a lane copies one value, whatever lists are long.
//
//   tiles  tiles of values -> the element that the first value of each belongs to
//   emit   elements -> all values of their groups, and their keys as often
//
// Layout. The values of all elements have places in a row, those of element i from offsets[i] on. A tile is 32 of these
// places, for the lanes of a warp. An element without values has the offset of the next one, and no place.
//
//   element       4          5     6     7                            8        tile 1 is places 32 to 63:
//   offsets      30         34    35    35                           60        tile_elements[1] = 4, whose values are
//   place     .. 30 31 | 32 33    34     -      35 36 ..           59 60 ..    30 to 33; lane 2 has element 5, lane 3
//             tile 0   | tile 1                                                element 7
//
// The element of a place is the last one whose offset is not greater. Such an element has values: otherwise the next one
// would have the same offset.
//
// Protocol.
//   1. tiles: a lane for each tile finds the element of the tile's first place by a binary search over all offsets.
//   2. emit: a warp reads where 32 elements end, from its tile's element on, one a lane, by one load. Each lane finds its
//      element among these, in five shuffles. Where all of them end before its place, it searches on, up to the element
//      of the next tile. This happens only if elements without values lie between those of the tile.
//   3. Each lane reads where the values of its element begin, as `count` wrote it (groups/value_lists.cuh), and copies
//      its value. Only in a list it reads the records of the group and of the segment, too.
// Both kernels read what earlier launches wrote, and write places of their own. Nothing is atomic.
//
// Why. A lane for each element would copy a long list alone while its warp waits; one heavy key would hold up the batch.
// A lane for each value finds its element instead. A search of each lane over all offsets is 26 reads, one after the
// other, for 50 M elements, before the first line of its list is asked for. The search for tiles is as long, but there
// is one lane in 32 for it, and all of these wait side by side. A warp of emit then reads 256 bytes of offsets, which is
// what the 32 elements of lists of one value have. Tiles of lists that are longer read some of the same bytes, which a
// cache has. Work is split in two such steps in merge-based kernels for sparse matrices, too (Merrill and Garland,
// Merge-Based Parallel Sparse Matrix-Vector Multiplication, SC 2016, section III).
//
// The records of groups lie at random, in a sector of 32 bytes each. `count` reads them before emit, and keeps 8 bytes of
// each in the order of the elements. So emit reads a quarter of a sector in a row for an element of one value, in place of
// a sector at random, and only its value at random.
#pragma once
#include "core/bytes.cuh"
#include "core/straight.cuh"
#include "groups/value_lists.cuh"

namespace warphash {

// The element from `low` on, and before `high`, that a place belongs to; that of `low` is not behind the place.
WARPHASH_FN u64 element_of_place(const u64* offsets, u64 low, u64 high, u64 place) {
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    (offsets[middle] <= place ? low : high) = middle;
  }
  return low;
}

struct FirstsOfTiles : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists&, const ListBatch& b, u64 tile, State&) {
    const u64* const offsets = reinterpret_cast<const u64*>(b.offsets);
    reinterpret_cast<u64*>(b.tile_elements)[tile] = element_of_place(offsets, 0, b.elements, tile * kEmitTile);
    return false;
  }
};

struct EmitByTiles {
  using Table = ValueLists;
  using Batch = ListBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 128;

  WARPHASH_FN static void run(const ValueLists& t, const ListBatch& b) {
    for (u64 place = thread_in_grid(); place - lane() < b.n; place += threads_in_grid()) {
      const Owner owner = owner_of(b, place);
      if (place < b.n) copy(t, b, owner, place);
    }
  }

 private:
  // An element, and where its values begin.
  struct Owner {
    u64 element, begin;
  };

  // The element that a place belongs to. All lanes of a warp call it, with the places of a tile.
  WARPHASH_FN static Owner owner_of(const ListBatch& b, u64 place) {
    const u64* const offsets = reinterpret_cast<const u64*>(b.offsets);
    const u64* const firsts = reinterpret_cast<const u64*>(b.tile_elements);
    const u64 tile = place / kEmitTile, first = firsts[tile];
    const u64 end = first + lane() < b.elements ? offsets[first + lane() + 1] : ~0ull;
    u32 before = 0;  // elements from the first one on that end at the place or before it
#pragma unroll
    for (u32 step = kEmitTile / 2; step; step /= 2)
      if (shuffle(end, before + step - 1, kEmitTile) <= place) before += step;
    const u64 begin = shuffle(end, (before - 1) % kEmitTile, kEmitTile);
    const u64 last_end = shuffle(end, kEmitTile - 1, kEmitTile);
    Owner owner = {first + before, before ? begin : offsets[first]};
    if (last_end <= place && place < b.n) {
      const u64 high = (tile + 1) * kEmitTile < b.n ? firsts[tile + 1] + 1 : b.elements;
      owner.element = element_of_place(offsets, first + kEmitTile, high, place);
      owner.begin = offsets[owner.element];
    }
    return owner;
  }

  // The value of an element with so many before it.
  WARPHASH_FN static const u8* row_of(const ValueLists& t, const ListBatch& b, u64 element, u64 before) {
    const u64 begin = reinterpret_cast<const u64*>(b.begins)[element];
    if (is_list(begin)) return value_of(t, groups_of(t)[group_of(b, element)], before);
    return in_global(reinterpret_cast<const u8*>(begin)) + before * t.row_bytes;
  }

  WARPHASH_FN static void copy(const ValueLists& t, const ListBatch& b, const Owner& owner, u64 to) {
    if (b.out_values)
      copy_row(reinterpret_cast<u8*>(b.out_values) + to * t.row_bytes, row_of(t, b, owner.element, to - owner.begin),
               t.row_bytes);
    if (b.out_keys)
      copy_row(reinterpret_cast<u8*>(b.out_keys) + to * b.key_bytes,
               reinterpret_cast<const u8*>(b.keys) + owner.element * b.key_bytes, b.key_bytes);
  }
};

}  // namespace warphash
