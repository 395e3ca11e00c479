// Rows that the lanes of a warp copy together.
//
// If each lane copied a row by itself, neighbouring lanes would store to different sectors, and memory would see each
// sector as often as a row has words. Here the rows of a warp are cut into pieces of 16 bytes, and lane l copies the
// pieces l, l + 32 and so on of all rows. So neighbouring lanes store to neighbouring pieces, and load from
// neighbouring pieces of a row.
#pragma once
#include "core/bytes.cuh"

namespace warphash {

// Copies the row at `from` to `to`, for each lane that is `live`. All lanes of the warp call it.
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
