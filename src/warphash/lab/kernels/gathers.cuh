// Entry points of the ceiling kernels. The including header defines the kernel: walk<bytes of a place, access>.
#pragma once

namespace warphash {

template <Access kAccess>
struct Gathers {
  using Table = Region;
  using Batch = Launch;
  static constexpr bool kWalks = true, kCounts = false;
  template <class... Range>
  WARPHASH_FN static void run(const Region& r, const Launch& b, Range... range) {
    switch (r.place_bytes) {
      case 4:
        return walk<4, kAccess>(r, b, range...);
      case 8:
        return walk<8, kAccess>(r, b, range...);
      case 16:
        return walk<16, kAccess>(r, b, range...);
      case 32:
        return walk<32, kAccess>(r, b, range...);
      case 64:
        return walk<64, kAccess>(r, b, range...);
      case 128:
        return walk<128, kAccess>(r, b, range...);
      case 256:
        return walk<256, kAccess>(r, b, range...);
      case 512:
        return walk<512, kAccess>(r, b, range...);
    }
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                              \
  WARPHASH_ENTRY(read, warphash::Gathers<warphash::Access::kRead>)          \
  WARPHASH_ENTRY(read_and_swap, warphash::Gathers<warphash::Access::kSwap>) \
  WARPHASH_ENTRY(read_and_exchange, warphash::Gathers<warphash::Access::kExchange>)
