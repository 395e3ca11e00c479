// The element that each place belongs to, where element i has the places from starts[i] up to starts[i + 1].
//
// Layout. A tile is 32 places, for the lanes of a warp. `firsts` has the element that the first place of each tile
// belongs to. An element without places has the start of the next one.
//
// Protocol.
//   1. A launch with a thread for each tile finds its first element, by a search over all starts (owner_among).
//   2. In the next launch, the lanes of a warp read the starts of the 32 elements from the first one of their tile on. A
//      lane finds its element among these, in five shuffles. If all of them end before its place, it searches on, up to
//      the first element of the next tile: that happens if elements without places lie between.
//
// Why. A lane for each element would do the work of one with many places alone, while its warp waits. A search of each
// lane over all starts would be as many reads, one after another, as the logarithm of the number of elements.
#pragma once
#include "core/gpu/schedule.cuh"

namespace warphash {

constexpr u32 kOwnerTile = 32;

struct Owners {
  const u64* starts;  // of each element, and one more
  u64 elements;
  const u64* firsts;  // of each tile: the element of its first place
  u64 places;
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
