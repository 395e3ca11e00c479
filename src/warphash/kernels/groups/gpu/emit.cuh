// All values of the groups of elements, on a GPU: a lane copies one value, whatever lists are long.
//
//   tiles  tiles of values -> the element that the first value of each belongs to
//   emit   elements -> all values of their groups, and their keys as often
//
// Layout. The values of all elements have places in a row, those of element i from offsets[i] on
// (core/gpu/owners/owners.cuh).
//
// Protocol.
//   1. tiles: notes the element of the first place of each tile.
//   2. emit: a lane finds the element of its place, reads where the values of this element begin, as `count` wrote it
//      (groups/value_lists.cuh), and copies its value. Only in a list it reads the records of the group and of the
//      segment, too.
// Both kernels read what earlier launches wrote, and write places of their own. Nothing is atomic.
//
// Why. A lane for each value, and not for each element: one heavy key would hold up the batch.
//
// The records of groups lie at random, in a sector of 32 bytes each. `count` reads them before emit, and keeps 8 bytes
// of each in the order of the elements. So emit reads a quarter of a sector in a row for an element of one value, in
// place of a sector at random, and only its value at random.
#pragma once
#include "core/bytes.cuh"
#include "core/gpu/owners/owners.cuh"
#include "core/straight.cuh"
#include "groups/value_lists.cuh"

namespace warphash {

struct FirstsOfTiles : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists&, const ListBatch& b, u64 tile, State&) {
    note_owner_of_tile(b.offsets, b.elements, b.tile_elements, tile);
    return false;
  }
};

struct EmitByTiles {
  using Table = ValueLists;
  using Batch = ListBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = 128;

  WARPHASH_FN static void run(const ValueLists& t, const ListBatch& b) {
    const Owners owners(b.offsets, b.elements, b.tile_elements, b.n);
    for (u64 place = thread_in_grid(); place - lane() < b.n; place += threads_in_grid()) {
      const Owner owner = owner_of(owners, place);
      if (place < b.n) copy(t, b, owner, place);
    }
  }

 private:
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
