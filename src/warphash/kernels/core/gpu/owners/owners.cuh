// The element that each place belongs to, where element i has the places from starts[i] up to starts[i + 1].
//
// Layout. A tile is 32 places, for the lanes of a warp. `firsts` has the element that the first place of each tile
// belongs to. An element without places has the start of the next one.
//
//   element       4          5     6     7                            8        tile 1 is places 32 to 63:
//   starts       30         34    35    35                           60        firsts[1] = 4, whose places are 30 to
//   place     .. 30 31 | 32 33    34     -      35 36 ..           59 60 ..    33; lane 2 has element 5, lane 3
//             tile 0   | tile 1                                                element 7
//
// The element of a place is the last one that does not start behind the place. Such an element has places: otherwise the
// next one would start there, too.
//
// Protocol.
//   1. A launch with a thread for each tile finds its first element, by a binary search over all starts (owner_among).
//   2. In the next launch, a warp reads where 32 elements end, from its tile's first one on, one a lane, by one load. Each
//      lane finds its element among these, in five shuffles. Where all of them end before its place, it searches on, up
//      to the first element of the next tile. This happens only if elements without places lie between.
//
// Why. A lane for each element would do the work of one with many places alone, while its warp waits; one heavy key would
// hold up the batch. A search of each lane over all starts is 26 reads, one after the other, for 50 M elements. The
// search for tiles is as long, but there is one lane in 32 for it, and all of these wait side by side. A warp then reads
// 256 bytes of starts, which is what 32 elements of one place have. Tiles of elements with more places read some of the
// same bytes, which a cache has. Work is split in two such steps in merge-based kernels for sparse matrices, too (Merrill
// and Garland, Merge-Based Parallel Sparse Matrix-Vector Multiplication, SC 2016, section III).
#pragma once
#include "core/gpu/owners/abi.cuh"
#include "core/gpu/schedule.cuh"

namespace warphash {

struct Owners {
  const u64* starts;  // of each element, and one more
  u64 elements;
  const u64* firsts;  // of each tile: the element of its first place
  u64 places;

  WARPHASH_FN Owners(u64 starts, u64 elements, u64 firsts, u64 places)
      : starts(reinterpret_cast<const u64*>(starts)),
        elements(elements),
        firsts(reinterpret_cast<const u64*>(firsts)),
        places(places) {}
};

// An element, and the first of its places.
struct Owner {
  u64 element, begin;
};

// The element from `low` on, and before `high`, that a place belongs to; `low` does not begin behind the place.
WARPHASH_FN u64 owner_among(const u64* starts, u64 low, u64 high, u64 place) {
  while (high - low > 1) {
    const u64 middle = low + (high - low) / 2;
    (starts[middle] <= place ? low : high) = middle;
  }
  return low;
}

// Step 1, of one tile.
WARPHASH_FN void note_owner_of_tile(u64 starts, u64 elements, u64 firsts, u64 tile) {
  const u64 owner = owner_among(reinterpret_cast<const u64*>(starts), 0, elements, tile * kOwnerTile);
  reinterpret_cast<u64*>(firsts)[tile] = owner;
}

// The element that a place belongs to. All lanes of a warp call it, with the places of a tile.
WARPHASH_FN Owner owner_of(const Owners& o, u64 place) {
  const u64 tile = place / kOwnerTile, first = o.firsts[tile];
  const u64 end = first + lane() < o.elements ? o.starts[first + lane() + 1] : ~0ull;
  u32 before = 0;  // elements from the first one on that end at the place or before it
#pragma unroll
  for (u32 step = kOwnerTile / 2; step; step /= 2)
    if (shuffle(end, before + step - 1, kOwnerTile) <= place) before += step;
  const u64 begin = shuffle(end, (before - 1) % kOwnerTile, kOwnerTile);
  const u64 last_end = shuffle(end, kOwnerTile - 1, kOwnerTile);
  Owner owner = {first + before, before ? begin : o.starts[first]};
  if (last_end <= place && place < o.places) {
    const u64 high = (tile + 1) * kOwnerTile < o.places ? o.firsts[tile + 1] + 1 : o.elements;
    owner.element = owner_among(o.starts, first + kOwnerTile, high, place);
    owner.begin = o.starts[owner.element];
  }
  return owner;
}

}  // namespace warphash
