// The ceiling of a lookup: the least that any hash table does for a key, without a hash table. Each element reads its
// key, reads a random place of a Region (abi.cuh), and writes an answer. The places are those of places.cuh, and the
// schedules are those of the other ceiling kernels.
//
//   look_up_4    keys and answers of 4 bytes
//   look_up_8    keys and answers of 8 bytes
//
// Layout. Element i goes to place place_of(keys[i] + `random`). Its answer is its key, combined by an exclusive or with a
// word of that place: so no answer can be written before the place was read. The caller fills the region and the keys.
//
// Why a header of its own. The plain reads of places.cuh have no keys to read and no answers to write. A find has both,
// so a ceiling without these two streams is one that no find can reach.
#pragma once
#include "core/abi.cuh"

namespace warphash {

template <class Key>
struct LookUp {
  using Table = Region;
  using Batch = warphash::Batch;
  static constexpr bool kWalks = true, kCounts = false;
  template <class... Range>
  WARPHASH_FN static void run(const Region& r, const Batch& b, Range... range) {
    switch (r.place_bytes) {
      case 4:
        return look_up<4, Key>(r, b, range...);
      case 8:
        return look_up<8, Key>(r, b, range...);
      case 16:
        return look_up<16, Key>(r, b, range...);
      case 32:
        return look_up<32, Key>(r, b, range...);
      case 64:
        return look_up<64, Key>(r, b, range...);
      case 128:
        return look_up<128, Key>(r, b, range...);
      case 256:
        return look_up<256, Key>(r, b, range...);
      case 512:
        return look_up<512, Key>(r, b, range...);
    }
  }
};

}  // namespace warphash

#undef WARPHASH_PLAIN_ENTRIES  // the other ceiling kernels are another program
#define WARPHASH_PLAIN_ENTRIES                               \
  WARPHASH_ENTRY(look_up_4, warphash::LookUp<warphash::u32>) \
  WARPHASH_ENTRY(look_up_8, warphash::LookUp<warphash::u64>)
