// Quotient cuckoo hashing: lines of 64 bytes, one of which answers a lookup.
// Sources: quotienting, as in Knuth, The Art of Computer Programming, volume 3, section 6.4 (exercise 13); bucketed
// cuckoo hashing and the outlook on filters of Better GPU Hash Tables (Awad et al., 2021), sections III and VIII.
//
// Layout: quotient/bucket.cuh. A slot keeps only the bits of a hash that its bucket does not tell, so 10 pairs of 4 + 4
// bytes share a line that has room for 8 whole ones, and the line has a filter of its keys that are elsewhere.
//
// Find: the home bucket and, if the key's bit is set in its filter, the second bucket.
//
// Update, of any kind: the elements are brought to their ranges of 512 buckets, and a block of threads (on a CPU, a
// thread) applies them to one range after another (quotient/bring.cuh, quotient/range.cuh). Both buckets of a key lie
// in one range. So no two blocks meet, no bucket has a lock, and no pair is ever displaced between two kernels.
//
// Departures from bucketed cuckoo hashing:
//   1. Two buckets a key, not three, and the second is close to the first. With 10 slots a bucket that suffices for 0.9
//      of the slots.
//   2. A find of an absent key asks a filter, and not whether the bucket was ever full, so it stays fast after an
//      erase: the filters of a range are made anew by the block that erases.
#pragma once
#include "quotient/place.cuh"

namespace warphash {

template <class S_>
struct QuotientCuckoo : OverQuotients, Places<S_> {
  using S = S_;
};

}  // namespace warphash
