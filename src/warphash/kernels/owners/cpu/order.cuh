// A batch in the order of the owners of its keys, and answers back, on a CPU.
//
//   count       keys -> the owner of each element, and how many elements of each segment each rank has
//   sum_apart   the same, of keys apart -> which of them have elements, and the order of these
//   sum_owners  the same, of ranks -> where the elements of each segment go, and how many rows each rank has
//   move        a column in the order of the caller -> in the order of owners
//   restore     a column in the order of owners -> in the order of the caller
//
// Layout. A segment is `length` elements in a row, but for the last one: one segment for each thread.
//
//   the caller's order   [ segment 0       | segment 1       | … ]       an owner, u8, for each element
//   starts               [ rank 0: segment 0 32 | segment 1 32 | … ][ rank 1: segment 0 32 | … ] …
//   the owners' order    [ rank 0: of segment 0 | of segment 1 | … ][ rank 1: of segment 0 | … ] …
//
// Elements of one rank keep the order that they have in the batch.
//
// Protocol.
//   1. count: a thread notes the owners of the segments that begin in its part of the batch, and counts them.
//   2. sum_apart, sum_owners: a thread turns the counts of a key apart, or of a rank, into sums over the segments before.
//   3. move, restore: a thread walks over its segments in the order of the caller. An element goes to the next place of
//      its owner, or comes from there. The first of these places is that of the rank, plus the sum for the segment.
// Threads share no word in one of the launches, so nothing is atomic. Owners are noted, so keys that change meanwhile
// cannot make a thread write outside of a rank's places.
//
// Why no places. A place of 4 bytes for each element would be written once, and read for each column. An owner is one
// byte, and the places of all owners are counters in a near cache.
//
// Why lines. Rows of up to 64 ranks are written one by one: 20 M rows of 8 bytes for 8 ranks at 627 M/s by one thread, and
// at 363 if lines are gathered first (core/cpu/line_writer.cuh). Rows of more ranks are gathered: 371 M/s for 96 ranks,
// and 69 one by one (docs/performance/distributed.md).
//
// Why a prefetch. The rows that come back are one stream for each rank. A processor follows few streams by itself: with
// 256 ranks, 20 M rows of 8 bytes were restored at 208 M/s, and at 425 with rows asked for ahead.
#pragma once
#include "core/cpu/line_writer.cuh"
#include "core/cpu/schedule.cuh"
#include "owners/owner.cuh"

namespace warphash {

// A task over the segments of a batch.
template <class Task, class Batch_>
struct OverOwnerSegments {
  using Table = OwnerSegments;
  using Batch = Batch_;
  static constexpr bool kWalks = true;
  static void run(const OwnerSegments& t, const Batch& b, u64 begin, u64 end) {
    for (u64 segment = (begin + t.length - 1) / t.length; segment < t.segments && segment * t.length < end; ++segment) {
      const u64 first = segment * t.length, behind = first + t.length < t.elements ? first + t.length : t.elements;
      Task::run(t, b, segment, first, behind);
    }
  }
};

struct CountOwners {
  static constexpr u32 kTallies = 4;  // neighbours have unlike ones, so an addition seldom waits for the one before

  static void run(const OwnerSegments& t, const OwnerBatch& b, u64 segment, u64 begin, u64 end) {
    u32 tallies[kTallies][kMostOwners] = {};
    u8* const owners = pointer<u8>(b.owners);
    const u32 ranks = static_cast<u32>(t.ranks);
    with_keys(b, [&](const auto& keys) {
      for (u64 i = begin; i < end; ++i) {
        const auto key = keys.load(i);
        u32 owner = owner_of_shard(keys.shard(key), ranks);
        for (u32 number = 0; number < t.apart; ++number)
          if (keys.is(key, pointer<const u64>(t.keys)[number])) owner = ranks + number;
        owners[i] = static_cast<u8>(owner);
        ++tallies[i % kTallies][owner];
      }
    });
    u32* const counts = pointer<u32>(t.starts) + segment;
    for (u32 owner = 0; owner < number_of_owners(t); ++owner) {
      u32 count = 0;
      for (const auto& tally : tallies) count += tally[owner];
      counts[owner * t.segments] = count;
    }
  }
};

// Turns the counts of an owner into sums over the segments before, from `sum` on. Returns the sum of all.
inline u32 sum_segments(const OwnerSegments& t, u64 owner, u32 sum) {
  u32* const starts = pointer<u32>(t.starts) + owner * t.segments;
  for (u64 segment = 0; segment < t.segments; ++segment) {
    const u32 count = starts[segment];
    starts[segment] = sum;
    sum += count;
  }
  return sum;
}

// Of one key apart.
struct SumApart : Straight<OwnerSegments, OwnerBatch> {
  static bool start(const OwnerSegments& t, const OwnerBatch&, u64 key, State&) {
    pointer<u32>(t.sizes)[t.ranks + key] = sum_segments(t, t.ranks + key, 0) != 0;
    return false;
  }
};

// Of one rank.
struct SumOwners : Straight<OwnerSegments, OwnerBatch> {
  static bool start(const OwnerSegments& t, const OwnerBatch& b, u64 rank, State&) {
    const u32 rows = sum_segments(t, rank, rows_apart(t, static_cast<u32>(rank), true));
    pointer<u32>(t.sizes)[rank] = rows_of_run(t, rows);
    pointer<u64>(b.counts)[rank] = rows;
    return false;
  }
};

// A row of so many bytes, at any address.
template <int kBytes>
struct ByteRow {
  u8 bytes[kBytes];
};

// The next place of each owner in a segment; of a key apart, how many of its elements were before.
struct OwnerPlaces {
  u32 next[kMostOwners], of_key[kMostApart] = {};
  OwnerPlaces(const OwnerSegments& t, u64 segment) {
    const u32 *const starts = pointer<const u32>(t.starts) + segment, *const sizes = pointer<const u32>(t.sizes);
    u32 first = 0;  // of an owner
    for (u64 owner = 0; owner < t.ranks; ++owner) {
      for (u64 key = 0; key < t.apart; ++key) {
        const u32 place = pointer<const u32>(t.places)[key];
        if (place / kMostOwners == owner) of_key[key] = first + place % kMostOwners;
      }
      next[owner] = first + starts[owner * t.segments];
      first += sizes[owner];
    }
    for (u64 key = 0; key < t.apart; ++key) next[t.ranks + key] = starts[(t.ranks + key) * t.segments];
  }

  // Of an element, or kNoPlace.
  template <bool kRestores, bool kApart>
  u32 take(const OwnerSegments& t, const OwnerMoveBatch& b, u32 owner) {
    const u32 place = next[owner]++;
    if constexpr (kApart)
      if (owner >= t.ranks) return place_apart<kRestores>(place, of_key[owner - t.ranks], b.once);
    return place;
  }
};

// Calls a function for rows of the width of a batch, if that is a power of two up to 16. Otherwise returns false.
template <class Call>
bool by_width(const OwnerMoveBatch& b, const Call& call) {
  switch (b.row_bytes) {
    case 1:
      return call(ByteRow<1>()), true;
    case 2:
      return call(ByteRow<2>()), true;
    case 4:
      return call(ByteRow<4>()), true;
    case 8:
      return call(ByteRow<8>()), true;
    case 16:
      return call(ByteRow<16>()), true;
    default:
      return false;
  }
}

// Ranks whose rows are written one by one, at most. Each has a page of its own, and the nearest cache of translations has
// so many.
constexpr u64 kFewStreams = 64;

// How far ahead the rows of a rank are asked for.
constexpr u64 kAheadBytes = 256;

// Calls a function with whether keys are apart, as a constant.
template <class Call>
void by_apart(const OwnerSegments& t, const Call& call) {
  if (t.apart)
    call(std::true_type());
  else
    call(std::false_type());
}

struct MoveRows {
  static void run(const OwnerSegments& t, const OwnerMoveBatch& b, u64 segment, u64 begin, u64 end) {
    const bool is_known = by_width(b, [&](auto row) {
      using Row = decltype(row);
      const bool are_few = t.ranks <= kFewStreams || t.apart;  // the first rows of keys apart come in any order
      if (are_few || !by_lines<Row>(t, b, segment, begin, end)) one_by_one<Row>(t, b, segment, begin, end);
    });
    if (is_known) return;
    by_apart(t, [&](auto has_apart) {
      OwnerPlaces places(t, segment);
      const u8* const owners = pointer<const u8>(b.owners);
      const u64 bytes = b.row_bytes;
      for (u64 i = begin; i < end; ++i) {
        const u32 place = places.take<false, has_apart>(t, b, owners[i]);
        if (has_apart && place == kNoPlace) continue;
        std::memcpy(pointer<u8>(b.target) + place * bytes, pointer<const u8>(b.source) + i * bytes, bytes);
      }
    });
  }

 private:
  template <class Row>
  static void one_by_one(const OwnerSegments& t, const OwnerMoveBatch& b, u64 segment, u64 begin, u64 end) {
    by_apart(t, [&](auto has_apart) {
      OwnerPlaces places(t, segment);
      const u8* const owners = pointer<const u8>(b.owners);
      const Row* const source = pointer<const Row>(b.source);
      Row* const target = pointer<Row>(b.target);
      for (u64 i = begin; i < end; ++i) {
        const u32 place = places.take<false, has_apart>(t, b, owners[i]);
        if (!has_apart || place != kNoPlace) target[place] = source[i];
      }
    });
  }

  // False if rows are not whole parts of lines, or if there is no memory.
  template <class Row>
  static bool by_lines(const OwnerSegments& t, const OwnerMoveBatch& b, u64 segment, u64 begin, u64 end) {
    const u64 skew = b.target % kLineBytes / sizeof(Row);  // rows of the first line that are not the batch's
    if (b.target % sizeof(Row) || t.elements + skew > ~0u) return false;
    OwnerPlaces places(t, segment);
    for (u64 owner = 0; owner < t.ranks; ++owner) places.next[owner] += static_cast<u32>(skew);
    const OwnerPlaces firsts = places;
    LineWriter<Row> writer(pointer<Row>(b.target) - skew, firsts.next, t.ranks);
    if (!writer.has_memory()) return false;
    const u8* const owners = pointer<const u8>(b.owners);
    const Row* const source = pointer<const Row>(b.source);
    for (u64 i = begin; i < end; ++i) {
      const u32 owner = owners[i];
      writer.put(owner, places.next[owner]++, source[i]);
    }
    for (u32 owner = 0; owner < t.ranks; ++owner) writer.flush(owner, places.next[owner]);
    end_streams();
    return true;
  }
};

struct RestoreRows {
  static void run(const OwnerSegments& t, const OwnerMoveBatch& b, u64 segment, u64 begin, u64 end) {
    by_apart(t, [&](auto has_apart) { restore<has_apart>(t, b, segment, begin, end); });
  }

 private:
  template <bool kApart>
  static void restore(const OwnerSegments& t, const OwnerMoveBatch& b, u64 segment, u64 begin, u64 end) {
    OwnerPlaces places(t, segment);
    const u8* const owners = pointer<const u8>(b.owners);
    const bool is_known = by_width(b, [&](auto row) {
      using Row = decltype(row);
      const Row* const source = pointer<const Row>(b.source);
      Row* const target = pointer<Row>(b.target);
      for (u64 i = begin; i < end; ++i) {
        const u32 place = places.take<true, kApart>(t, b, owners[i]);
        if (kApart && place == kNoPlace) {
          target[i] = {};
          continue;
        }
        const Row* const from = source + place;
        prefetch(reinterpret_cast<const u8*>(from) + kAheadBytes);
        target[i] = *from;
      }
    });
    if (is_known) return;
    const u64 bytes = b.row_bytes;
    for (u64 i = begin; i < end; ++i) {
      const u32 place = places.take<true, kApart>(t, b, owners[i]);
      u8* const to = pointer<u8>(b.target) + i * bytes;
      if (kApart && place == kNoPlace)
        std::memset(to, 0, bytes);
      else
        std::memcpy(to, pointer<const u8>(b.source) + place * bytes, bytes);
    }
  }
};

}  // namespace warphash
