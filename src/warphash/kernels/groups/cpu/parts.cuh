// Dense numbers for more keys than a cache holds: the words of a batch go to parts by the upper bits of their hashes, and
// each part has a table in a thread's cache.
//
//   count_parts     the part of each element, and how many elements of a chunk each part has
//   bring_to_parts  words -> the memory of their parts
//   number_parts    words of a part -> codes: numbers within the part, in the order of its elements
//   replay          codes -> numbers in the order of the batch
//   count_keys      counts of the codes of each part -> counts of the keys
//   group_parts     rows that were brought to parts -> rows of each key together
//
// Layout. `brought` has the words of part 0, then those of part 1, and so on. Those of a part lie in the order of the batch,
// chunk after chunk. The code of an element (u32) takes the place of its word: that of word k of a part's chunk is the k-th
// u32 from where the words of this chunk begin.
//
//   part   [ words of chunk 0 | words of chunk 1 | … ]      places_of[chunk][part]: where they begin
//
// Protocol. The steps are launches of their own. A thread does chunks, or the parts that begin in its share of the batch, so
// threads share no word in one of them.
//   1. count_parts reads each key and notes its part. The host sums up the counts: where each chunk of each part begins.
//   2. bring_to_parts reads the keys again, and the noted parts: so a batch that changes meanwhile cannot write outside
//      of a part.
//   3. number_parts numbers the words of a part in their order (groups/cpu/lines.cuh), notes how many keys the part had
//      before each chunk, and writes codes over words. The host sums up: how many keys all parts have before each chunk.
//   4. replay walks over a chunk, takes the next code of the element's part, and sees a new key by its code: the codes of a
//      part are given out in order, so the first element of a key has as its code the number of keys that the part had
//      before. New keys take the next number of the chunk, whose first number is known from step 3. `map` has the number
//      of each key: that of code k of a part is map[firsts_of[part] + k]. An element gets this place.
//   5. renumber (groups/cpu/number.cuh): places go through `map`. With one chunk, replay has written numbers already.
//   6. group_parts, if rows are to be grouped by their keys: bring_to_parts brings them as it brought the words, so row k of
//      a part has code k. A part's keys have their rows in the order of codes, from where the part begins; so a thread
//      writes to rows of one part at a time. The counts of the codes become the places of their next rows.
// Nothing is atomic: the end of a launch orders one step before the next.
//
// Why. No row number travels with a word, and nothing is sorted: replay learns the order from the batch itself. With
// 16-byte pairs of word and row number, the two passes over all elements would move twice the bytes. Rows are grouped part
// by part because a part's rows stay in a cache, and the rows of all keys do not (docs/performance/groups.md).
#pragma once
#include "core/cpu/line_writer.cuh"
#include "groups/cpu/lines.cuh"
#include "groups/number.cuh"

namespace warphash {

WARPHASH_FN u64 parts_of(const PartBatch& b) { return 1ull << b.part_bits; }
template <class Word>
WARPHASH_FN u32 part_of(const Chunks& c, const PartBatch& b, Word key) {
  return static_cast<u32>(mix(static_cast<u64>(key) ^ c.salt) >> (64 - b.part_bits));
}

// The elements of a part that are of one chunk: places in the order of parts.
struct Stretch {
  u64 first, behind;
  WARPHASH_FN static Stretch of(const Chunks& c, const PartBatch& b, u64 chunk, u64 part) {
    const u32* const places = pointer<const u32>(b.places_of) + (chunk << b.part_bits) + part;
    return {*places, chunk + 1 < c.count ? places[parts_of(b)] : pointer<const u32>(b.begins)[part + 1]};
  }
  WARPHASH_FN u32* codes(const PartBatch& b) const { return pointer<u32>(b.brought + first * b.key_bytes); }
};

template <class Word>
struct CountParts {
  static bool run(const Chunks& chunks, const PartBatch& batch, u64 chunk, u64 begin, u64 end) {
    const Chunks c = chunks;
    const PartBatch b = batch;
    const Word* const keys = pointer<const Word>(b.keys);
    u16* const parts = pointer<u16>(b.parts);
    u32* const counts = pointer<u32>(b.places_of) + (chunk << b.part_bits);
    for (u64 part = 0; part < parts_of(b); ++part) counts[part] = 0;
    for (u64 i = begin; i < end; ++i) {
      const u32 part = part_of(c, b, keys[i]);
      parts[i] = static_cast<u16>(part);
      ++counts[part];
    }
    return true;
  }
};

template <class Word>
struct BringToParts {
  static bool run(const Chunks&, const PartBatch& b, u64 chunk, u64 begin, u64 end) {
    const Word* const keys = pointer<const Word>(b.keys);
    const u16* const parts = pointer<const u16>(b.parts);
    const u32* const firsts = pointer<const u32>(b.places_of) + (chunk << b.part_bits);
    Counters counters(parts_of(b));
    u32* const places = counters.begin();
    LineWriter<Word> brought(pointer<Word>(b.brought), firsts, parts_of(b));
    if (!places || !brought.has_memory()) return false;
    for (u64 part = 0; part < parts_of(b); ++part) places[part] = firsts[part];
    for (u64 i = begin; i < end; ++i) {
      const u32 part = parts[i];
      brought.put(part, places[part]++, keys[i]);
    }
    for (u64 part = 0; part < parts_of(b); ++part) brought.flush(static_cast<u32>(part), places[part]);
    end_streams();
    return true;
  }
};

struct NumberParts {
  using Table = Chunks;
  using Batch = PartBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const PartBatch& b, u64 begin, u64 end) {
    if (!(b.key_bytes == 8 ? number_all_parts<u64>(c, b, begin, end) : number_all_parts<u32>(c, b, begin, end)))
      give_up(b);
  }

 private:
  template <class Word>
  static bool number_all_parts(const Chunks& c, const PartBatch& b, u64 begin, u64 end) {
    const u32* const begins = pointer<const u32>(b.begins);
    NumberLines<Word> table(c.salt, static_cast<u32>(b.part_bits));
    u64 expected = b.expected;
    for (u64 part = 0; part < parts_of(b); ++part) {
      if (begins[part] < begin || begins[part] >= end) continue;
      const u64 elements = begins[part + 1] - begins[part];
      if (!table.reset(expected < elements ? expected : elements) || !number(table, c, b, part)) return false;
      pointer<u32>(b.distinct)[part] = table.size;
      expected = table.size + table.size / 16;
    }
    return true;
  }

  template <class Word>
  static bool number(NumberLines<Word>& table, const Chunks& c, const PartBatch& b, u64 part) {
    u32* const tally = b.tallies ? pointer<u32>(b.tallies) + pointer<const u32>(b.begins)[part] : nullptr;
    for (u64 chunk = 0; chunk < c.count; ++chunk) {
      const Stretch stretch = Stretch::of(c, b, chunk, part);
      const Word* const words = pointer<const Word>(b.brought) + stretch.first;
      u32* const codes = stretch.codes(b);
      pointer<u32>(b.seen)[(chunk << b.part_bits) + part] = table.size;
      const bool made = number_all<Word>(
          table, 0, stretch.behind - stretch.first, [&](u64 i) { return words[i]; },
          [&](u64 i, u32 code, bool is_new) {
            codes[i] = code;  // its word, and those before, were read
            if (tally) tally[code] = is_new ? 1 : tally[code] + 1;
          });
      if (!made) return false;
    }
    return true;
  }
};

template <class Word>
struct Replay {
  static bool run(const Chunks& c, const PartBatch& batch, u64 chunk, u64 begin, u64 end) {
    const PartBatch b = batch;
    Streams streams(b, chunk);
    if (!streams.of) return false;
    Stream* const of = streams.of;
    const u16* const parts = pointer<const u16>(b.parts);
    u32 *const firsts = pointer<u32>(b.firsts), *const map = pointer<u32>(b.map);
    const bool is_only = c.count == 1;
    u32 number = pointer<const u32>(b.bases)[chunk];
    for (u64 i = begin; i < end; i += kNumberBlock) {
      const u32 n = end - i < kNumberBlock ? static_cast<u32>(end - i) : kNumberBlock;
      u32 places[kNumberBlock];
      bool is_new[kNumberBlock];
      for (u32 k = 0; k < n; ++k) {
        Stream& stream = of[parts[i + k]];
        const u32 code = *stream.next++;
        prefetch(stream.next + kAhead);
        is_new[k] = code == stream.seen;
        stream.seen += is_new[k];
        places[k] = stream.first + code;
        prefetch(map + places[k]);
      }
      for (u32 k = 0; k < n; ++k) {
        if (is_new[k]) {
          firsts[number] = static_cast<u32>(i + k);
          map[places[k]] = number++;
        }
        if (b.numbers) set_number(b, i + k, is_only ? map[places[k]] : places[k]);
      }
    }
    return true;
  }

 private:
  static constexpr u32 kAhead = 48;
  // The codes of a part that are left in a chunk.
  struct Stream {
    const u32* next;
    u32 seen;   // keys of the part so far
    u32 first;  // where the numbers of the part begin in `map`
  };
  struct Streams {
    Stream* const of;
    Streams(const PartBatch& b, u64 chunk) : of(static_cast<Stream*>(malloc(parts_of(b) * sizeof(Stream)))) {
      const u64 first = chunk << b.part_bits;
      for (u64 part = 0; of && part < parts_of(b); ++part)
        of[part] = {pointer<const u32>(b.brought + pointer<const u32>(b.places_of)[first + part] * sizeof(Word)),
                    pointer<const u32>(b.seen)[first + part], pointer<const u32>(b.firsts_of)[part]};
    }
    ~Streams() { free(of); }
    Streams(const Streams&) = delete;
  };
};

struct CountKeys {
  using Table = Chunks;
  using Batch = PartBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks&, const PartBatch& b, u64 begin, u64 end) {
    const u32 *const begins = pointer<const u32>(b.begins), *const map = pointer<const u32>(b.map);
    for (u64 part = 0; part < parts_of(b); ++part) {
      if (begins[part] < begin || begins[part] >= end) continue;
      const u32* const numbers = map + pointer<const u32>(b.firsts_of)[part];
      const u32* const tally = pointer<const u32>(b.tallies) + begins[part];
      for (u32 k = 0; k < pointer<const u32>(b.distinct)[part]; ++k) pointer<u32>(b.counts)[numbers[k]] = tally[k];
    }
  }
};

struct GroupParts {
  using Table = Chunks;
  using Batch = GroupBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const GroupBatch& b, u64 begin, u64 end) {
    const u32* const begins = pointer<const u32>(b.begins);
    for (u64 part = 0; part < parts_of(b); ++part) {
      if (begins[part] < begin || begins[part] >= end) continue;
      u32* const places = pointer<u32>(b.tallies) + begins[part];
      set_places(b, part, begins[part], places);
      for (u64 chunk = 0; chunk < c.count; ++chunk) {
        const Stretch stretch = Stretch::of(c, b, chunk, part);
        b.row_bytes == 8 ? put<u64>(b, stretch, places) : put<u32>(b, stretch, places);
      }
    }
  }

 private:
  static void set_places(const GroupBatch& b, u64 part, u32 place, u32* tally) {
    const u32* const numbers = pointer<const u32>(b.map) + pointer<const u32>(b.firsts_of)[part];
    for (u32 k = 0; k < pointer<const u32>(b.distinct)[part]; ++k) {
      const u32 elements = tally[k];
      pointer<u64>(b.offsets)[numbers[k]] = tally[k] = place;
      place += elements;
    }
  }
  template <class Row>
  static void put(const GroupBatch& b, const Stretch& stretch, u32* places) {
    const u32* const codes = stretch.codes(b);
    const Row* const rows = pointer<const Row>(b.rows_brought) + stretch.first;
    Row* const out = pointer<Row>(b.out_rows);
    for (u64 i = 0; i < stretch.behind - stretch.first; ++i) out[places[codes[i]]++] = rows[i];
  }
};

}  // namespace warphash
