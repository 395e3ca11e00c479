// The codes of words on a CPU, where the words that have one lie in a small range.
//
//   put_places   words -> the place of each: its code
//   find_places  words -> their codes, -1 for a word that has none
//
// Layout. Place k belongs to the word low + k, modulo the width of a word: its code + 1, or 0. So no two words share a
// place, and no key is stored. One place behind the range is 0; a word that is outside looks there.
//
// If several elements have one word, the place keeps the code of any of them: threads store relaxed, and the end of the
// launch orders the stores before find_places.
//
// Why. 10 M lookups among 1 M words took 33 ms by a table, and 7 by their places (two threads of an EPYC). The processor
// has as many lookups under way by itself as with a prefetch: 9.7 ms by one thread, 10.8 with one; among 5 M words, whose
// places take 20 MB, 29.5 and 30.5.
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/cpu/members.cuh"

namespace warphash {

struct PutPlace {
  template <class Word, class Code>
  static void run(const KeyPlaces& t, const PlaceBatch& b, u64 begin, u64 end) {
    u32* const places = pointer<u32>(t.places);
    const Word* const words = pointer<const Word>(b.words);
    const Code* const codes = pointer<const Code>(b.codes);
    for (u64 i = begin; i < end; ++i) {
      const u64 place = place_among(t, words[i]);
      if (place < t.range) store_relaxed(places + place, static_cast<u32>(codes[i]) + 1);
    }
  }
};

struct FindPlace {
  template <class Word, class Code>
  static void run(const KeyPlaces& t, const PlaceBatch& b, u64 begin, u64 end) {
    const u32* const places = pointer<const u32>(t.places);
    const Word* const words = pointer<const Word>(b.words);
    Code* const codes = pointer<Code>(b.codes);
    const Word low = static_cast<Word>(t.low);
    const u64 range = t.range;
    const auto place_of = [=](u64 i) {
      const u64 place = static_cast<Word>(words[i] - low);
      return place < range ? place : range;  // where there is 0
    };
    for (u64 i = begin; i < end; ++i) codes[i] = static_cast<Code>(static_cast<i64>(places[place_of(i)]) - 1);
  }
};

// A task over words and codes of any width.
template <class OfWord>
struct OverPlaces {
  using Table = KeyPlaces;
  using Batch = PlaceBatch;
  static constexpr bool kWalks = true;
  static void run(const KeyPlaces& table, const PlaceBatch& batch, u64 begin, u64 end) {
    const KeyPlaces t = table;
    const PlaceBatch b = batch;
    b.code_bytes == 4 ? over<i32>(t, b, begin, end) : over<i64>(t, b, begin, end);
  }

 private:
  template <class Code>
  static void over(const KeyPlaces& t, const PlaceBatch& b, u64 begin, u64 end) {
    with_integer(t.word_bytes, [&]<class Word>() { OfWord::template run<Word, Code>(t, b, begin, end); });
  }
};

}  // namespace warphash
