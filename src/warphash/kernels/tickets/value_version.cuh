// A sequence lock for values that take several words: mixed batches read and overwrite them in place, each value whole.
//
// Layout: TicketTable::version_mask + 1 words of 64 bits, at most 2^20 of them, all 0 at first. Slot s has word
// s & version_mask, so slots may share a word. A word (bits, high to low):
//   [ writes that have ended 31 | under way 1 | slot 32 ]
//   under way   1: somebody writes the value of `slot`
//   slot        whose value is being written, or was written last
//
// Protocol
//   write   1. Load the word, relaxed. If somebody writes a value of the same slot, this write is done (below). If of
//              another slot, try again.
//           2. A compare-and-swap, relaxed, sets `under way` and `slot`. If the swap fails, and the word now names the
//              same slot, this write is done (below). If it names another slot, try again.
//           3. A fence (acquire, release). Acquire: the stores of this write come behind those of the last one. Release:
//              who loads a word that this write stores, and then fences, sees that the word has changed.
//           4. Store the value, relaxed, word by word.
//           5. Store the word with one write more and not `under way`, with .release.
//   read    1. Load the word, relaxed. If the value of the slot is being written, try again.
//           2. A fence (acquire): who sees step 5 of a write sees its step 4.
//           3. Load the value, relaxed, word by word.
//           4. A fence (acquire). Load the word again, relaxed. If it has changed, try again.
//
// When it happens. A read: at its first load of the word. A write: at step 5. From step 2 on, no read of the value ends
// well, so nobody can tell whether it happened before.
// A write is done without a store if another write to the same slot is under way when this one looks, or began between
// its two looks. The other one overwrites what this one would have stored, and nobody would have seen it. This write
// happens before the end of the other one, at a moment when both are under way. So nobody who writes a key waits for
// others who write the same key.
//
// Nobody waits inside a read or a write: a caller that is to try again does so in its next step, so lanes of a warp
// cannot lock each other out. From step 2 to step 5 a write waits for nothing.
// A word of a version cannot come back while somebody reads: a launch has fewer than 2^31 writes.
//
// Why so few words. One for each slot would be exact, and would cost 4 bytes a slot, and each find one more random read
// of the memory. 8 MiB stay in the cache of a GPU. A read whose word another slot shares is tried again only if a write
// there begins or ends meanwhile.
#pragma once
#include "core/bytes.cuh"
#include "tickets/abi.cuh"

namespace warphash {

// Copies a row that others may be writing.
struct RowRead {
  static constexpr u64 kAtOnce = 4;  // words that are loaded before the first of them is stored
  u8* to;
  const u8* from;
  u64 bytes;
  template <class Word>
  WARPHASH_FN void by() const {
    const Word* const source = reinterpret_cast<const Word*>(from);
    Word* const target = reinterpret_cast<Word*>(to);
    const u64 words = bytes / sizeof(Word);
    u64 j = 0;
    for (; j + kAtOnce <= words; j += kAtOnce) {
      Word held[kAtOnce];
#pragma unroll
      for (u64 k = 0; k < kAtOnce; ++k) held[k] = load_relaxed(source + j + k);
#pragma unroll
      for (u64 k = 0; k < kAtOnce; ++k) target[j + k] = held[k];
    }
    for (; j < words; ++j) target[j] = load_relaxed(source + j);
  }
};
// Writes a row, or zeros, that others may be reading.
struct RowWrite {
  u8* to;
  const u8* from;  // null: zeros
  u64 bytes;
  template <class Word>
  WARPHASH_FN void by() const {
    for (u64 j = 0; j < bytes; j += sizeof(Word))
      store_relaxed(reinterpret_cast<Word*>(to + j), from ? *reinterpret_cast<const Word*>(from + j) : Word{});
  }
};
WARPHASH_FN void read_row(u8* to, const u8* from, u64 bytes) {
  by_words<u32>(reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes, RowRead{to, from, bytes});
}
WARPHASH_FN void write_row(u8* to, const u8* from, u64 bytes) {
  by_words<u32>(reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes, RowWrite{to, from, bytes});
}

// The sequence lock of a slot's value.
struct ValueVersion {
  static constexpr u64 kUnderWay = 1ull << 32;  // added to the word: a write begins, or ends
  u64* word;
  u32 slot;

  WARPHASH_FN static ValueVersion of(const TicketTable& t, u32 slot) {
    return {reinterpret_cast<u64*>(t.versions) + (slot & t.version_mask), slot};
  }
  WARPHASH_FN u64 load() const { return load_relaxed(word); }
  WARPHASH_FN bool is_of_slot(u64 seen) const { return static_cast<u32>(seen) == slot; }
  WARPHASH_FN static bool is_under_way(u64 seen) { return seen & kUnderWay; }

  // False: to be tried again. `before` was loaded before the fence that lies before this call.
  WARPHASH_FN bool read(u64 before, u8* to, const u8* value, u64 bytes) const {
    if (is_under_way(before) && is_of_slot(before)) return false;
    read_row(to, value, bytes);
    acquire_fence();
    return load() == before;
  }
  // False: to be tried again.
  WARPHASH_FN bool write(u8* value, const u8* from, u64 bytes) const {
    const u64 before = load();
    if (is_under_way(before)) return is_of_slot(before);
    const u64 mine = (before & ~0xffffffffull) + kUnderWay + slot;
    const u64 met = compare_exchange_word(word, before, mine);
    if (met != before) return is_of_slot(met);
    acquire_release_fence();
    write_row(value, from, bytes);
    store_release(word, mine + kUnderWay);
    return true;
  }
};

}  // namespace warphash
