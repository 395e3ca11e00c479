// Which words are among others, on a CPU, where the others lie in a small range.
//
//   add_members   marks each word
//   mark_members  words -> flags: whether the word is marked
//
// Layout. Byte k of `marks` belongs to the word low + k: 1 for a member, else 0. Differences are taken modulo the width of a
// word, so low may be negative, and a word below low lies behind the range. One byte behind the range is 0.
//
// Threads that add one word write the same byte: a relaxed store, and the end of the launch orders it before mark_members.
//
// Why bytes. Bits take an atomic operation for each word to add, because words of several threads share a byte: 1 M words
// of 1 M took 9.3 ms on two threads of an EPYC, and bytes take 0.3. Looking up 10 M took 5.8 and 4.7 ms.
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/abi.cuh"
#include "groups/cpu/integers.cuh"

namespace warphash {

// The place of a word among `Members` or `KeyPlaces`.
template <class Table, class Word>
WARPHASH_FN u64 place_among(const Table& m, Word word) {
  return static_cast<Word>(word - static_cast<Word>(m.low));
}

struct AddMember {
  template <class Word>
  static void run(const Members& m, const MemberBatch& b, u64 begin, u64 end) {
    u8* const marks = pointer<u8>(m.marks);
    const Word* const words = pointer<const Word>(b.words);
    for (u64 i = begin; i < end; ++i) {
      const u64 place = place_among(m, words[i]);
      if (place < m.range) store_relaxed(marks + place, u8(1));
    }
  }
};

struct MarkMember {
  static constexpr u64 kAhead = 32;
  static constexpr u64 kNear = 512 << 10;  // bytes of marks that need no prefetch: they stay in a near cache
  template <class Word>
  static void run(const Members& m, const MemberBatch& b, u64 begin, u64 end) {
    m.range > kNear ? mark<Word, true>(m, b, begin, end) : mark<Word, false>(m, b, begin, end);
  }

 private:
  template <class Word, bool kFar>
  static void mark(const Members& m, const MemberBatch& b, u64 begin, u64 end) {
    const u8* const marks = pointer<const u8>(m.marks);
    const Word* const words = pointer<const Word>(b.words);
    u8* const flags = pointer<u8>(b.flags);
    const Word low = static_cast<Word>(m.low);
    const u64 range = m.range;
    const auto place_of = [=](u64 i) {
      const u64 place = static_cast<Word>(words[i] - low);
      return place < range ? place : range;  // whose mark is 0
    };
    for (u64 i = begin; i < end; ++i) {
      if (kFar && i + kAhead < end) prefetch(marks + place_of(i + kAhead));
      flags[i] = marks[place_of(i)];
    }
  }
};

// A task over words of any width.
template <class OfWord>
struct OverMembers {
  using Table = Members;
  using Batch = MemberBatch;
  static constexpr bool kWalks = true;
  static void run(const Members& m, const MemberBatch& b, u64 begin, u64 end) {
    with_integer(m.word_bytes, [&]<class Word>() { OfWord::template run<Word>(m, b, begin, end); });
  }
};

}  // namespace warphash
