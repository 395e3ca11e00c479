// Dense numbers for the distinct words of a batch on a CPU, in the order in which the words first appear.
//
//   number        each chunk by a table of its own (groups/cpu/lines.cuh)
//   merge         numbers the keys of all chunks, one chunk after another
//   renumber      numbers of a chunk, or codes of a part -> numbers
//
// and those of groups/cpu/parts.cuh, for more keys than a cache holds, and of groups/number.cuh, for rows of any width.
//
// Layout. The lists of a chunk lie where its elements lie: chunk c has its first elements in `firsts` and its counts in
// `counts`, from element c * length on. A thread does the chunks that begin in its part of the batch.
//
// Protocol. The steps are launches of their own, and threads share no word in one of them.
//   1. number: `numbers` gets the numbers within the chunk, and `sizes` how many keys there are.
//   2. merge, one thread: the keys of all chunks go to one table in their order, so those of the first chunk keep their
//      numbers. `map` gets the number of each. `firsts` and `counts` are packed to the front. A chunk's lists begin behind
//      the keys of all chunks before it, so nothing is overwritten that is still to be read.
//   3. renumber: numbers of elements behind the first chunk go through `map`.
// With one chunk, step 1 is all.
//
// Why. The order of first appearance is that of a walk from the front. A chunk is walked so, and the first chunk in which
// a key appears decides; so any number of chunks gives the same numbers. Merging takes one thread: it pays while the
// keys are few beside the elements (storage/policies.py).
#pragma once
#include "groups/cpu/lines.cuh"
#include "groups/cpu/parts.cuh"
#include "groups/number.cuh"

namespace warphash {

template <class Word>
struct NumberChunk {
  static bool run(const Chunks& c, const ChunkBatch& b, u64 chunk, u64 begin, u64 end) {
    if (b.range) {
      NumberPlaces<Word> table(b, chunk);
      return number(table, b, chunk, begin, end);
    }
    NumberLines<Word> table(c.salt, 0);
    return table.reset(b.expected) && number(table, b, chunk, begin, end);
  }

 private:
  template <class Table>
  static bool number(Table& table, const ChunkBatch& batch, u64 chunk, u64 begin, u64 end) {
    const ChunkBatch b = batch;  // a local copy, as in core/cpu/schedule.cuh
    const Word* const keys = pointer<const Word>(b.keys);
    u32* const firsts = pointer<u32>(b.firsts) + begin;
    u32* const counts = b.counts ? pointer<u32>(b.counts) + begin : nullptr;
    const bool made = number_all<Word>(
        table, begin, end, [&](u64 i) { return keys[i]; },
        [&](u64 i, u32 number, bool is_new) {
          if (is_new) {
            firsts[number] = static_cast<u32>(i);
            if (counts) counts[number] = 0;
          }
          if (counts) ++counts[number];
          if (b.numbers) set_number(b, i, number);
        });
    pointer<u32>(b.sizes)[chunk] = table.size;
    return made;
  }
};

template <class Word>
struct MergeChunks {
  static bool run(const Chunks& c, const ChunkBatch& b) {
    if (b.range) {
      NumberPlaces<Word> table(b, 0);  // the places of the first chunk, with its keys
      table.size = pointer<const u32>(b.sizes)[0];
      return merge(table, c, b, 1);
    }
    NumberLines<Word> table(c.salt, 0);
    return table.reset(b.expected) && merge(table, c, b, 0);
  }

 private:
  template <class Table>
  static bool merge(Table& table, const Chunks& c, const ChunkBatch& b, u64 from) {
    const Word* const keys = pointer<const Word>(b.keys);
    u32 *const firsts = pointer<u32>(b.firsts), *const counts = pointer<u32>(b.counts),
               *const map = pointer<u32>(b.map);
    u32 base = 0;
    for (u64 chunk = from; chunk < c.count; ++chunk) {
      const u64 begin = chunk * c.length;
      const u32 size = pointer<const u32>(b.sizes)[chunk];
      pointer<u32>(b.bases)[chunk] = base;
      const bool made = number_all<Word>(
          table, begin, begin + size, [&](u64 i) { return keys[firsts[i]]; },
          [&](u64 i, u32 number, bool is_new) {
            map[base + (i - begin)] = number;
            if (is_new) firsts[number] = firsts[i];
            if (counts) counts[number] = is_new ? counts[i] : counts[number] + counts[i];
          });
      if (!made) return false;
      base += size;
    }
    pointer<u32>(b.sizes)[c.count] = table.size;
    return true;
  }
};

// Over the elements from `renumbered_from` on.
struct Renumber {
  using Table = Chunks;
  using Batch = ChunkBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const ChunkBatch& b, u64 begin, u64 end) {
    end += b.renumbered_from;
    for (u64 i = begin + b.renumbered_from, behind; i < end; i = behind) {
      const u64 chunk = i / c.length;
      behind = (chunk + 1) * c.length < end ? (chunk + 1) * c.length : end;
      const u32* const map = pointer<const u32>(b.map) + pointer<const u32>(b.bases)[chunk];
      b.number_bytes == 8 ? renumber(pointer<u64>(b.numbers), map, i, behind)
                          : renumber(pointer<u32>(b.numbers), map, i, behind);
    }
  }

 private:
  template <class Number>
  static void renumber(Number* numbers, const u32* map, u64 begin, u64 end) {
    for (u64 i = begin; i < end; ++i) {
      if (i + kNumberBlock < end) prefetch(map + numbers[i + kNumberBlock]);
      numbers[i] = map[numbers[i]];
    }
  }
};

// A task over the chunks of a batch: OfWord for keys of 4 or of 8 bytes.
template <class Batch_, class OfWord4, class OfWord8>
struct OverChunks {
  using Table = Chunks;
  using Batch = Batch_;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const Batch& b, u64 begin, u64 end) {
    for (u64 chunk = (begin + c.length - 1) / c.length; chunk < c.count && chunk * c.length < end; ++chunk) {
      const u64 first = chunk * c.length, behind = chunk + 1 == c.count ? b.n : first + c.length;
      const bool made =
          b.key_bytes == 8 ? OfWord8::run(c, b, chunk, first, behind) : OfWord4::run(c, b, chunk, first, behind);
      if (!made) give_up(b);
    }
  }
};

// The thread with the first element does all of it.
struct MergeAllChunks {
  using Table = Chunks;
  using Batch = ChunkBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const ChunkBatch& b, u64 begin, u64) {
    if (begin) return;
    if (!(b.key_bytes == 8 ? MergeChunks<u64>::run(c, b) : MergeChunks<u32>::run(c, b))) give_up(b);
  }
};

}  // namespace warphash
