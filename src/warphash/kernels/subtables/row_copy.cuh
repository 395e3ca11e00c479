// Rows that the lanes of a warp copy together.
//
// A lane that copies a row by itself writes to another sector than its neighbours with each store, and memory sees each sector
// as often as a row has words. Here piece c of all rows, 16 bytes each, is lane c's, then lane c + 32's: stores of a warp are
// neighbours, and so are the loads of a row.
#pragma once
#include "core/bytes.cuh"

namespace warphash {

// Copies the row at `from` to `to`, of those lanes that are `live`; all lanes of the warp call it.
WARPHASH_FN void copy_rows(u8* to, const u8* from, bool live, u64 bytes) {
  const u64 target = reinterpret_cast<u64>(to), source = live ? reinterpret_cast<u64>(from) : 0;
  if (kWarpLanes == 1 || ballot((target | source | bytes) % sizeof(Halves) != 0)) {
    if (live) copy_row(to, from, bytes);
    return;
  }
  const u32 pieces = static_cast<u32>(bytes / sizeof(Halves));
  for (u32 c = lane(); c < kWarpLanes * pieces; c += kWarpLanes) {
    const u32 row = c / pieces;
    const u64 at = c % pieces * sizeof(Halves);
    const u64 read = shuffle(source, row, 32), write = shuffle(target, row, 32);
    if (read) *reinterpret_cast<Halves*>(write + at) = *reinterpret_cast<const Halves*>(read + at);
  }
}

}  // namespace warphash
