// Where a thread of a CPU looks for the number of a key: a table of its own, or a place for each key that can be.
//
//   NumberLines   hashed keys; grows
//   NumberPlaces  keys of a small range: the key is the place
//
// Layout of a line of NumberLines, 64 bytes. Lines fill from the front, and a key that finds its line full goes to the
// next one that is not.
//
//   keys of 8 bytes   [ key: 64 ] x 5  [ number: 32 ] x 5  [ count: 32 ]
//   keys of 4 bytes   [ key: 32 ] x 7  [ number: 32 ] x 7  [ count: 32 ]  [ 32 bits unused ]
//
// A count says which slots hold keys, so no key is reserved. A line is compared as a whole. NumberPlaces has a word of
// 32 bits for each key that can be: its number + 1, or 0.
//
// One thread uses a table, so nothing here is atomic. The key that is hashed is the one that is kept: `number_block`
// works on a copy of the caller's keys, which other threads may change.
//
// Why keys beside their numbers. An element fetches one line. With numbers in an array of their own it fetches two, and a
// byte of counts; of tables beyond the second-level cache that is most of the time.
#pragma once
#include <cstring>

#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "groups/abi.cuh"

namespace warphash {

constexpr u32 kNumberBlock = 64;  // elements whose lines are fetched together

template <class Word>
struct alignas(64) NumberLine {
  static constexpr u32 kSlots = sizeof(Word) == 8 ? 5 : 7;
  Word keys[kSlots];
  u32 numbers[kSlots];
  u32 count;

  WARPHASH_FN u32 hits(Word key) const {
    u32 mask = 0;
    if constexpr (kComparesLines)
      mask = equal_words<Word, 0, kSlots>(this, key);
    else
      for (u32 j = 0; j < kSlots; ++j) mask |= static_cast<u32>(keys[j] == key) << j;
    return mask & ((1u << count) - 1);
  }
  WARPHASH_FN void add(Word key, u32 number) {
    keys[count] = key;
    numbers[count++] = number;
  }
};

template <class Word>
class NumberLines {
  using Line = NumberLine<Word>;
  Line* lines_ = nullptr;
  u64 room_ = 0;   // lines that there is memory for
  u64 count_ = 0;  // and those in use
  const u64 salt_;
  const u32 skipped_;  // upper bits of the hashes that are the same for all keys

 public:
  u32 size = 0;  // keys

  NumberLines(u64 salt, u32 skipped_bits) : salt_(salt), skipped_(skipped_bits) {}
  ~NumberLines() { free(lines_); }
  NumberLines(const NumberLines&) = delete;

  // Forgets all keys. Lines are half full with `expected` keys. False if there is no memory.
  bool reset(u64 expected) {
    size = 0;
    return shape(2 * expected / Line::kSlots + 8);
  }
  WARPHASH_FN u64 home(Word key) const { return multiply_high(mix(static_cast<u64>(key) ^ salt_) << skipped_, count_); }
  WARPHASH_FN void fetch(u64 home) const { prefetch(lines_ + home); }
  WARPHASH_FN bool has_room() const { return size + kNumberBlock <= count_ * (Line::kSlots - 1); }

  // Twice the lines. False if there is no memory: the table is as it was.
  bool grow() {
    Line* const old = lines_;
    const u64 count = count_, room = room_;
    lines_ = nullptr, room_ = 0;
    if (!shape(2 * count)) {
      lines_ = old, count_ = count, room_ = room;
      return false;
    }
    for (u64 i = 0; i < count; ++i)
      for (u32 j = 0; j < old[i].count; ++j) {
        u64 at = home(old[i].keys[j]);
        while (lines_[at].count == Line::kSlots) at = next(at);
        lines_[at].add(old[i].keys[j], old[i].numbers[j]);
      }
    free(old);
    return true;
  }

  // The number of a key; an absent key gets the next one.
  WARPHASH_FN u32 number(u64 home, Word key) {
    for (u64 at = home;; at = next(at)) {
      Line& line = lines_[at];
      if (const u32 hits = line.hits(key)) [[likely]]
        return line.numbers[first_bit(hits)];
      if (line.count < Line::kSlots) {
        line.add(key, size);
        return size++;
      }
    }
  }

 private:
  WARPHASH_FN u64 next(u64 at) const { return at + 1 == count_ ? 0 : at + 1; }
  bool shape(u64 count) {
    if (count > room_) {
      free(lines_);
      room_ = 0;
      lines_ = static_cast<Line*>(aligned_alloc(sizeof(Line), count * sizeof(Line)));
      if (!lines_) return false;
      room_ = count;
    }
    count_ = count;
    std::memset(static_cast<void*>(lines_), 0, count * sizeof(Line));
    return true;
  }
};

template <class Word>
class NumberPlaces {
  u32* const places_;
  const Word low_;
  const u64 range_;

 public:
  u32 size = 0;

  NumberPlaces(const ChunkBatch& b, u64 chunk)
      : places_(pointer<u32>(b.key_places) + chunk * (b.range + 1)), low_(static_cast<Word>(b.low)), range_(b.range) {}

  // A key outside of the range, which the batch did not have when the range was found, shares the last place.
  WARPHASH_FN u64 home(Word key) const {
    const u64 place = static_cast<Word>(key - low_);
    return place < range_ ? place : range_;
  }
  WARPHASH_FN void fetch(u64 home) const { prefetch(places_ + home); }
  WARPHASH_FN bool has_room() const { return true; }
  bool grow() { return true; }
  WARPHASH_FN u32 number(u64 home, Word) {
    u32& place = places_[home];
    if (!place) place = ++size;
    return place - 1;
  }
};

// Numbers the keys key_of(begin), ..., key_of(end - 1), in this order, and calls see(i, number, is_new) for each. False if
// there is no memory for a larger table.
template <class Word, class Table, class KeyOf, class See>
inline bool number_all(Table& table, u64 begin, u64 end, const KeyOf& key_of, const See& see) {
  Word keys[2][kNumberBlock];
  u64 homes[2][kNumberBlock];
  const auto load = [&](u64 first, u32 side) {
    const u32 n = first >= end ? 0 : end - first < kNumberBlock ? static_cast<u32>(end - first) : kNumberBlock;
    for (u32 k = 0; k < n; ++k) keys[side][k] = key_of(first + k);
    return n;
  };
  const auto fetch = [&](u32 n, u32 side) {
    for (u32 k = 0; k < n; ++k) homes[side][k] = table.home(keys[side][k]);
    for (u32 k = 0; k < n; ++k) table.fetch(homes[side][k]);
  };
  u32 side = 0, n = load(begin, 0);
  fetch(n, 0);
  for (u64 i = begin; i < end; i += kNumberBlock, side ^= 1) {
    if (!table.has_room()) [[unlikely]] {
      if (!table.grow()) return false;
      fetch(n, side);
    }
    const u32 following = load(i + kNumberBlock, side ^ 1);
    fetch(following, side ^ 1);
    for (u32 k = 0; k < n; ++k) {
      const u32 before = table.size, number = table.number(homes[side][k], keys[side][k]);
      see(i + k, number, number == before);
    }
    n = following;
  }
  return true;
}

// Tells the host that there was no memory to work in.
WARPHASH_FN void give_up(const Launch& b) { atomic_add(&report_of(b)->unplaced, 1ull); }

}  // namespace warphash
