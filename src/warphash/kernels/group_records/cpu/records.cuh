// A record for each group: what a CPU keeps of the values of the elements with one key.
//
//   record_chunks    numbers the keys of a chunk, and accumulates values in the same pass     few keys
//   accumulate       values of elements whose numbers are known
//   merge_records    records of all stretches -> words of groups
//   bring_values     values -> the memory of the parts of their keys                            many keys
//   record_parts     numbers the keys of a part, and accumulates its values in the same pass
//   replay_firsts    records of parts -> words of groups, in the order in which keys first appear
//
// Layout. A record has a word of 64 bits for each accumulator:
//
//   cells   [ word 0 | word 1 | … of record 0 ]  [ … of record 1 ]  …
//
// A stretch is a run of elements of the batch, and has records of its own. A thread makes the records of a part in memory
// of its own, and copies them behind those of the parts that were done before, where records_of[part] says.
//
// Protocol of few keys. The steps are launches of their own. A thread does the chunks that begin in its share.
//   1. record_chunks: a block of keys is numbered by the table of the chunk (groups/cpu/lines.cuh), then the values of the
//      block go to the records of the stretch. A chunk is one stretch, or several. A chunk that finds more keys than there
//      is room for stops, and the host starts again in another way.
//   2. merge (groups/cpu/number.cuh): the number that each key of a chunk has among all.
//   3. merge_records, one thread: words are combined stretch by stretch.
// Protocol of many keys. Steps 1 and 2 of groups/cpu/parts.cuh bring the words of keys to parts.
//   3. bring_values brings the columns in the same order.
//   4. record_parts numbers the keys of a part as number_parts does, block by block, and notes the first element of each
//      key by a bit. No code is written.
//   5. replay_firsts walks over a chunk and looks at the bit of each element. The next new key of a part has the next
//      record of the part. New keys take the next number of the chunk, so words are written in a row.
// Nothing is atomic: the end of a launch orders one step before the next.
//
// The order of floating-point sums. In a part, the values of a key come in the order of the batch. In stretches, they do so
// within a stretch, and the sums of stretches are added in their order. The host cuts stretches by the number of elements
// and of groups alone (storage/groups/ways.py). So no sum depends on the number of threads, nor on the way that is taken.
//
// Why bits. The replay of numbers reads a code of 4 bytes for each element. The bits of 10 M elements are 1.25 MB.
#pragma once
#include <cstring>

#include "group_records/cpu/accumulate.cuh"
#include "groups/cpu/number.cuh"

namespace warphash {

// Memory of a thread; none if there is none.
template <class T>
struct Held {
  T* const of;
  explicit Held(u64 count) : of(static_cast<T*>(malloc(count * sizeof(T)))) {}
  ~Held() { free(of); }
  Held(const Held&) = delete;
};

// Takes the numbers of elements one after another, and accumulates the values of whole blocks.
class Recorder {
  const RecordBatch& b_;
  u64* const cells_;
  const bool in_parts_;
  u64 first_;  // the first element whose value is not accumulated yet
  u32 held_;   // records that have words
  u32 numbers_[kRecordBlock];

 public:
  // Of elements from `first` on. `held` records have words already.
  Recorder(const RecordBatch& b, u64* cells, u32 held, u64 first, bool in_parts)
      : b_(b), cells_(cells), in_parts_(in_parts), first_(first), held_(held) {}
  Recorder(const Recorder&) = delete;

  // `size` is how many keys there are.
  WARPHASH_FN void put(u64 i, u32 number, u32 size) {
    numbers_[i % kRecordBlock] = number;
    if (i % kRecordBlock == kRecordBlock - 1) [[unlikely]]
      flush(i + 1, size);
  }
  // Accumulates the values of the elements before `end`, and returns how many records have words. If there is no room
  // for so many, the values are left out.
  [[gnu::noinline]] u32 flush(u64 end, u32 size) {
    if (size <= b_.room && first_ < end) {
      begin_records(b_, cells_, held_, size);
      add_values(b_, cells_, {numbers_ + first_ % kRecordBlock, first_, static_cast<u32>(end - first_), in_parts_});
      held_ = size;
    }
    first_ = end;
    return held_;
  }
};

template <class Word>
struct RecordChunk {
  static bool run(const Chunks& c, const RecordBatch& b, u64 chunk, u64 begin, u64 end) {
    if (b.range) {
      NumberPlaces<Word> table(b, chunk);
      return record(table, b, chunk, begin, end);
    }
    NumberLines<Word> table(c.salt, 0);
    return table.reset(b.expected) && record(table, b, chunk, begin, end);
  }

 private:
  template <class Table>
  static bool record(Table& table, const RecordBatch& batch, u64 chunk, u64 begin, u64 end) {
    const RecordBatch b = batch;  // a local copy, as in core/cpu/schedule.cuh
    const Word* const keys = pointer<const Word>(b.keys);
    u32* const firsts = pointer<u32>(b.firsts) + begin;
    for (u64 first = begin, behind; first < end && table.size <= b.room; first = behind) {
      const u64 stretch = first / b.stretch_length;
      behind = (stretch + 1) * b.stretch_length < end ? (stretch + 1) * b.stretch_length : end;
      u64* const cells = pointer<u64>(b.cells) + stretch * b.room * b.width;
      Recorder recorder(b, cells, 0, first, false);
      const bool made = number_all<Word>(
          table, first, behind, [&](u64 i) { return keys[i]; },
          [&](u64 i, u32 number, bool is_new) {
            if (is_new) firsts[number] = static_cast<u32>(i);
            recorder.put(i, number, table.size);
          });
      if (!made) return false;
      pointer<u32>(b.stretch_sizes)[stretch] = recorder.flush(behind, table.size);
    }
    pointer<u32>(b.sizes)[chunk] = table.size;
    return true;
  }
};

// A thread does the stretches that begin in its share of the batch.
struct AccumulateStretches {
  using Table = Chunks;
  using Batch = RecordBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const RecordBatch& batch, u64 begin, u64 end) {
    const RecordBatch b = batch;
    for (u64 stretch = (begin + c.length - 1) / c.length; stretch < c.count && stretch * c.length < end; ++stretch) {
      const u64 first = stretch * c.length, behind = stretch + 1 == c.count ? b.n : first + c.length;
      u64* const cells = pointer<u64>(b.cells) + stretch * b.room * b.width;
      begin_records(b, cells, 0, b.room);
      b.number_bytes == 8 ? add<u64>(b, cells, first, behind) : add<u32>(b, cells, first, behind);
    }
  }

 private:
  // A number that no group has, such as -1, has the last record.
  template <class Number>
  static void add(const RecordBatch& b, u64* cells, u64 begin, u64 end) {
    const Number* const given = pointer<const Number>(b.numbers);
    const u64 dropped = b.room - 1;
    u32 numbers[kRecordBlock];
    for (u64 first = begin; first < end; first += kRecordBlock) {
      const u32 n = end - first < kRecordBlock ? static_cast<u32>(end - first) : kRecordBlock;
      for (u32 k = 0; k < n; ++k) {
        const u64 number = given[first + k];
        numbers[k] = static_cast<u32>(number < dropped ? number : dropped);
        prefetch(cells + numbers[k] * b.width);
      }
      add_values(b, cells, {numbers, first, n, false});
    }
  }
};

// The thread with the first element does all of it. `expected` is how many groups there are.
struct MergeRecords {
  using Table = Chunks;
  using Batch = RecordBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const RecordBatch& b, u64 begin, u64) {
    if (begin) return;
    for (u64 word = 0; word < b.width; ++word) {
      const Accumulator accumulator = accumulator_of(b, word);
      with_operation(accumulator.operation, [&]<class Operation>() { merge<Operation>(c, b, accumulator, word); });
      const Finish finish(b, accumulator);
      for (u64 group = 0; group < b.expected; ++group) finish.out[group] = finish(finish.out[group]);
    }
  }

 private:
  template <class Operation>
  static void merge(const Chunks& c, const RecordBatch& b, const Accumulator& accumulator, u64 word) {
    u64* const out = pointer<u64>(accumulator.out);
    for (u64 group = 0; group < b.expected; ++group) out[group] = Operation::kIdentity;
    for (u64 stretch = 0; stretch < b.stretches; ++stretch) {
      const u64 chunk = stretch * b.stretch_length / c.length;
      const u32* const map =  // the keys of the first chunk have their numbers
          b.map && chunk ? pointer<const u32>(b.map) + pointer<const u32>(b.bases)[chunk] : nullptr;
      const u64* const cells = pointer<const u64>(b.cells) + stretch * b.room * b.width + word;
      const u64 size = b.stretch_sizes ? pointer<const u32>(b.stretch_sizes)[stretch] : b.expected;
      for (u64 k = 0; k < size; ++k) {
        u64& to = out[map ? map[k] : k];
        to = Operation::combined(to, cells[k * b.width]);
      }
    }
  }
};

struct RecordParts {
  using Table = Chunks;
  using Batch = RecordBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const RecordBatch& b, u64 begin, u64 end) {
    if (!(b.key_bytes == 8 ? record_all_parts<u64>(c, b, begin, end) : record_all_parts<u32>(c, b, begin, end)))
      give_up(b);
  }

 private:
  template <class Word>
  static bool record_all_parts(const Chunks& c, const RecordBatch& batch, u64 begin, u64 end) {
    const RecordBatch b = batch;
    const u32* const begins = pointer<const u32>(b.begins);
    u64 most = 0;
    for (u64 part = 0; part < parts_of(b); ++part)
      if (begins[part] >= begin && begins[part] < end && begins[part + 1] - begins[part] > most)
        most = begins[part + 1] - begins[part];
    const Held<u64> cells(most * b.width);  // of which pages are taken that are written to
    if (!cells.of) return false;
    NumberLines<Word> table(c.salt, static_cast<u32>(b.part_bits));
    u64 expected = b.expected;
    for (u64 part = 0; part < parts_of(b); ++part) {
      if (begins[part] < begin || begins[part] >= end) continue;
      const u64 elements = begins[part + 1] - begins[part];
      if (!table.reset(expected < elements ? expected : elements) || !record(table, c, b, part, cells.of)) return false;
      pointer<u32>(b.distinct)[part] = table.size;
      const u64 first = fetch_add(pointer<u64>(b.filled), static_cast<u64>(table.size));
      pointer<u32>(b.records_of)[part] = static_cast<u32>(first);
      std::memcpy(pointer<u64>(b.cells) + first * b.width, cells.of, table.size * b.width * sizeof(u64));
      expected = table.size + table.size / 16;
    }
    return true;
  }

  template <class Word>
  static bool record(NumberLines<Word>& table, const Chunks& c, const RecordBatch& b, u64 part, u64* cells) {
    u32* const bits = pointer<u32>(b.is_first) + part;
    u32 held = 0;
    for (u64 chunk = 0; chunk < c.count; ++chunk) {
      const Stretch stretch = Stretch::of(c, b, chunk, part);
      const Word* const words = pointer<const Word>(b.brought);
      pointer<u32>(b.seen)[(chunk << b.part_bits) + part] = table.size;
      Recorder recorder(b, cells, held, stretch.first, true);
      const bool made = number_all<Word>(
          table, stretch.first, stretch.behind, [&](u64 i) { return words[i]; },
          [&](u64 i, u32 number, bool is_new) {
            if (is_new) bits[i / 32] |= 1u << i % 32;
            recorder.put(i, number, table.size);
          });
      if (!made) return false;
      held = recorder.flush(stretch.behind, table.size);
    }
    return true;
  }
};

struct ReplayFirsts {
  static bool run(const Chunks&, const RecordBatch& batch, u64 chunk, u64 begin, u64 end) {
    const RecordBatch b = batch;
    const Held<Stream> streams(parts_of(b));
    const Held<Finish> finishes(b.width);
    if (!streams.of || !finishes.of) return false;
    for (u64 part = 0; part < parts_of(b); ++part) {
      const u64 at = (chunk << b.part_bits) + part;
      streams.of[part] = {pointer<const u32>(b.places_of)[at],
                          pointer<const u32>(b.records_of)[part] + pointer<const u32>(b.seen)[at]};
    }
    for (u64 word = 0; word < b.width; ++word) finishes.of[word] = Finish(b, accumulator_of(b, word));
    const u16* const parts = pointer<const u16>(b.parts);
    const u32* const bits = pointer<const u32>(b.is_first);
    u32* const firsts = pointer<u32>(b.firsts);
    u32 number = pointer<const u32>(b.bases)[chunk];
    for (u64 first = begin; first < end; first += kNumberBlock) {
      const u32 n = end - first < kNumberBlock ? static_cast<u32>(end - first) : kNumberBlock;
      u64 records[kNumberBlock];
      u32 elements[kNumberBlock], found = 0;
      for (u32 k = 0; k < n; ++k) {
        const u64 part = parts[first + k];
        Stream& stream = streams.of[part];
        const u32 place = stream.next++, is_first = bits[part + place / 32] >> place % 32 & 1;
        records[found] = stream.record * b.width;
        elements[found] = static_cast<u32>(first + k);
        stream.record += is_first;
        found += is_first;
      }
      for (u32 k = 0; k < found; ++k) {
        firsts[number + k] = elements[k];
        prefetch(pointer<const u64>(b.cells) + records[k] + kRecordsAhead);
      }
      for (u64 word = 0; word < b.width; ++word) {
        const Finish finish = finishes.of[word];
        for (u32 k = 0; k < found; ++k) finish.out[number + k] = finish(pointer<const u64>(b.cells)[records[k] + word]);
      }
      number += found;
    }
    return true;
  }

 private:
  static constexpr u64 kRecordsAhead = 16;  // words
  struct Stream {
    u32 next;    // the place of the next element of the part
    u64 record;  // of its next new key
  };
};

// Rows of 1, 2, 4 or 8 bytes to their parts.
struct BringValues {
  using Table = Chunks;
  using Batch = PartBatch;
  static constexpr bool kWalks = true;
  static void run(const Chunks& c, const PartBatch& b, u64 begin, u64 end) {
    if (b.key_bytes > 2)
      OverChunks<PartBatch, BringToParts<u32>, BringToParts<u64>>::run(c, b, begin, end);
    else
      b.key_bytes == 2 ? OverChunks<PartBatch, BringToParts<u16>, BringToParts<u16>>::run(c, b, begin, end)
                       : OverChunks<PartBatch, BringToParts<u8>, BringToParts<u8>>::run(c, b, begin, end);
  }
};

}  // namespace warphash
