// Integers of a width that the host chooses, on a CPU.
#pragma once
#include "platform/platform.cuh"

namespace warphash {

// Calls see.template operator()<Int>() with the unsigned type of 1, 2, 4 or 8 bytes.
template <class See>
WARPHASH_FN void with_integer(u64 bytes, const See& see) {
  switch (bytes) {
    case 1:
      return see.template operator()<u8>();
    case 2:
      return see.template operator()<u16>();
    case 4:
      return see.template operator()<u32>();
    default:
      return see.template operator()<u64>();
  }
}

}  // namespace warphash
