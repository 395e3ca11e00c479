// Rows of bytes, as the caller has them and as tables keep them.
#pragma once
#include "platform/platform.cuh"

namespace warphash {

constexpr int kRow = -1;  // width of a value: what the table says, as value_bytes

// Moves rows by the widest word that suits them; `bits` has all the ones of their addresses and their length, which are
// multiples of `Least`.
template <class Least = u8, class Move>
WARPHASH_FN void by_words(u64 bits, const Move& move) {
  if (bits % 16 == 0)
    move.template by<Halves>();
  else if (bits % 8 == 0)
    move.template by<u64>();
  else if (bits % 4 == 0)
    move.template by<u32>();
  else
    move.template by<Least>();
}

struct RowCopy {
  u8* to;
  const u8* from;
  u64 bytes;
  template <class Word>
  WARPHASH_FN void by() const {
    for (u64 j = 0; j < bytes; j += sizeof(Word))
      *reinterpret_cast<Word*>(to + j) = *reinterpret_cast<const Word*>(from + j);
  }
};
WARPHASH_FN void copy_row(u8* to, const u8* from, u64 bytes) {
  by_words(reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes, RowCopy{to, from, bytes});
}

// Takes the row at `from` for the one at `at`, which goes to `spare`, where `from` may be already.
struct RowExchange {
  u8* at;
  const u8* from;
  u8* spare;
  u64 bytes;
  template <class Word>
  WARPHASH_FN void by() const {
    for (u64 j = 0; j < bytes; j += sizeof(Word)) {
      Word* const slot = reinterpret_cast<Word*>(at + j);
      const Word old = *slot;
      *slot = *reinterpret_cast<const Word*>(from + j);
      *reinterpret_cast<Word*>(spare + j) = old;
    }
  }
};
WARPHASH_FN void exchange_row(u8* at, const u8* from, u8* spare, u64 bytes) {
  const u64 places = reinterpret_cast<u64>(at) | reinterpret_cast<u64>(from) | reinterpret_cast<u64>(spare);
  by_words(places | bytes, RowExchange{at, from, spare, bytes});
}

}  // namespace warphash
