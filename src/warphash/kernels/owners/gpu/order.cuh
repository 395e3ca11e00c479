// A batch in the order of the owners of its keys, and answers back, on a GPU.
//
//   count_few4, …    keys -> the owner of each element, and how many elements of each segment each rank has
//   sum_apart        the same, of keys apart -> which of them have elements, and the order of these
//   sum_owners       the same, of ranks -> where the elements of each segment go, and how many rows each rank has
//   move_few4, …     a column in the order of the caller -> in the order of owners
//   restore_few4, …  a column in the order of owners -> in the order of the caller
//
// There is a kernel for few ranks and for many, by the bytes of a key or a row; and for rows of any other width.
//
// Layout. A segment is a few rounds of 256 elements in a row, and a warp has it. Lanes have neighbours of a round:
//
//   element of a round   0          32         64      224        256
//                        [  item 0  |  item 1  | …    |  item 7  ]      lane r has element 32 k + r as item k
//   owners of a round    [ of lane 0: items 0 to 7, 8 each | of lane 1 | … ]      one load of 8 bytes for each lane
//   starts               [ rank 0: segment 0 32 | segment 1 32 | … ][ rank 1: segment 0 32 | … ] …
//   the owners' order    [ rank 0: of segment 0 | of segment 1 | … ][ rank 1: of segment 0 | … ] …
//
// Elements of one rank keep the order that they have in the batch.
//
// Protocol.
//   1. count_*: a warp notes the owners of its segment, and counts them.
//   2. sum_apart, sum_owners: a block turns the counts of a key apart, or of a rank, into sums over the segments before.
//   3. move_*, restore_*: a warp begins with the first place of each rank, and its sum for the segment. It takes 32
//      elements at a time. Ballots tell each lane its peers, the lanes whose elements have its owner. The place of an
//      element is the counter of the owner, and the peers before it. Then the counters grow by the peers.
// A warp works by itself: no block waits for its slowest warp. Nothing is atomic but counters of many ranks in the
// memory of a block. The end of a launch orders one step before the next.
//
// The counters of up to 8 ranks and keys apart lie in the lanes of the warp, that of rank r in lane r. A lane learns that
// of its owner by a shuffle. More counters lie in the memory of the block. All lanes read theirs before the first of the
// peers writes: a barrier of the warp lies between, and another one behind.
//
// Why owners are noted, and places are not. A place is 4 bytes, which would be written once and read for each column. An
// owner is 1 byte, and ballots compute the place again. For each element of 8 bytes: 8 + 1 to count, 1 + 8 + 8 to move,
// and as much to restore. Keys are not hashed again for other columns, whatever their width.
//
// Why rows go to their places one by one. A warp writes 32 neighbours of each of 8 ranks in a round. The second-level
// cache puts the pieces of a line together.
#pragma once
#include "core/gpu/partition.cuh"
#include "core/gpu/schedule.cuh"
#include "owners/gpu/abi.cuh"
#include "owners/owner.cuh"

namespace warphash {

constexpr u32 kOwnerThreads = block_threads(256), kOwnerWarps = kOwnerThreads / kWarpLanes;
constexpr u32 kOwnerItems = kOwnerRound / kWarpLanes;
static_assert(kOwnerItems == sizeof(u64), "a lane loads the owners of its items at once");

// A round: which elements it has. Only the last one of a batch is not full.
template <bool kFull>
struct OwnerRound {
  u64 first;
  u32 n;
  WARPHASH_FN static u32 number(u32 k) { return k * kWarpLanes + lane(); }
  WARPHASH_FN u64 element(u32 k) const { return first + number(k); }
  WARPHASH_FN bool has(u32 k) const { return kFull || number(k) < n; }
  // The lanes that have an item k.
  WARPHASH_FN u32 lanes_with(u32 k) const {
    if (kFull || n >= (k + 1) * kWarpLanes) return ~0u;
    return n <= k * kWarpLanes ? 0 : (1u << (n - k * kWarpLanes)) - 1;
  }
  WARPHASH_FN u64* owners(u64 owners) const { return pointer<u64>(owners) + first / kOwnerItems + lane(); }
};

WARPHASH_FN u32 owner_in(u64 owners, u32 k) { return static_cast<u32>(owners >> 8 * k) & 0xffu; }

// The segment of this warp.
struct OwnerSegment {
  const u64 number, first, end;
  WARPHASH_FN explicit OwnerSegment(const OwnerSegments& t)
      : number(thread_in_grid() / kWarpLanes),
        first(number * t.length),
        end(first + t.length < t.elements ? first + t.length : t.elements) {}
  WARPHASH_FN u32* starts(const OwnerSegments& t, u64 rank) const {
    return pointer<u32>(t.starts) + rank * t.segments + number;
  }
  // Calls an object with each round. (No lambda: see FindShards.)
  template <class Call>
  WARPHASH_FN void for_rounds(const Call& call) const {
    for (u64 at = first; at < end; at += kOwnerRound) {
      if (end - at >= kOwnerRound)
        call(OwnerRound<true>{at, kOwnerRound});
      else
        call(OwnerRound<false>{at, static_cast<u32>(end - at)});
    }
  }
};

// 32 copies of a bit.
WARPHASH_FN u32 copies_of_bit(u32 x, u32 bit) { return static_cast<u32>(static_cast<i32>(x << (31 - bit)) >> 31); }
WARPHASH_FN u32 lanes_before() { return (1u << lane()) - 1; }

// The places of keys apart: lane k has that of key k.
class PlacesApart {
  u32 mine_ = 0;

  WARPHASH_FN static u32 noted(const OwnerSegments& t) {
    return lane() < t.apart ? pointer<const u32>(t.places)[lane()] : 0;
  }

 public:
  // Lanes have the first places of 32 ranks, from `of_first` on.
  WARPHASH_FN void start(const OwnerSegments& t, u32 of_first, u32 first_place) {
    const u32 rank = noted(t) / kMostOwners, place = shuffle(first_place, rank % kWarpLanes, kWarpLanes);
    if (rank / kWarpLanes == of_first / kWarpLanes) mine_ = place + noted(t) % kMostOwners;
  }
  // Of the key of an element's owner.
  WARPHASH_FN u32 of(const OwnerSegments& t, u32 owner) const {
    return shuffle(mine_, (owner - static_cast<u32>(t.ranks)) % kWarpLanes, kWarpLanes);
  }
};

// A counter for each of few owners, in the lanes of a warp. All lanes call each function.
class FewCounters {
  static constexpr u32 kBits = 3;
  static_assert(1 << kBits == kFewOwners);
  u32 mine_ = 0;  // that of the owner whose number is that of the lane

 public:
  PlacesApart apart;

  WARPHASH_FN void start_with_zeros() {}
  WARPHASH_FN void start_with_places(const OwnerSegments& t, const OwnerSegment& segment) {
    mine_ = sum_before(lane() < t.ranks ? pointer<const u32>(t.sizes)[lane()] : 0);
    apart.start(t, 0, mine_);
    if (lane() >= t.ranks) mine_ = 0;
    if (lane() < number_of_owners(t)) mine_ += *segment.starts(t, lane());
  }
  WARPHASH_FN void write(const OwnerSegments& t, const OwnerSegment& segment) const {
    if (lane() < number_of_owners(t)) *segment.starts(t, lane()) = mine_;
  }
  // `lanes` have elements.
  WARPHASH_FN void add(u32 owner, u32 lanes) {
    u32 of_mine = lanes;
#pragma unroll
    for (u32 bit = 0; bit < kBits; ++bit) of_mine &= ~(ballot(owner >> bit & 1) ^ copies_of_bit(lane(), bit));
    mine_ += bit_count(of_mine);
  }
  // The place of this lane's element. (Lanes without an element are behind all elements of the batch, so nobody asks for
  // the counters that they change.)
  WARPHASH_FN u32 take(u32 owner) {
    u32 of_mine = ~0u, peers = ~0u;
#pragma unroll
    for (u32 bit = 0; bit < kBits; ++bit) {
      const u32 votes = ballot(owner >> bit & 1);
      of_mine &= ~(votes ^ copies_of_bit(lane(), bit));
      peers &= ~(votes ^ copies_of_bit(owner, bit));
    }
    const u32 place = shuffle(mine_, owner, kWarpLanes) + bit_count(peers & lanes_before());
    mine_ += bit_count(of_mine);
    return place;
  }
};

// The same for many owners, in the memory of the block.
class ManyCounters {
  static constexpr u32 kBits = 8;
  u32* const counters_;  // of this warp

 public:
  PlacesApart apart;

  WARPHASH_FN ManyCounters()
      : counters_(static_cast<u32*>(block_memory<kOwnerWarps * kMostOwners * sizeof(u32)>()) +
                  thread_in_block() / kWarpLanes * kMostOwners) {}
  WARPHASH_FN void start_with_zeros() {
    for (u32 owner = lane(); owner < kMostOwners; owner += kWarpLanes) counters_[owner] = 0;
    warp_barrier();
  }
  WARPHASH_FN void start_with_places(const OwnerSegments& t, const OwnerSegment& segment) {
    u32 first = 0;  // place of the first rank of the next 32
    for (u32 of_first = 0; of_first < t.ranks; of_first += kWarpLanes) {
      const u32 rank = of_first + lane();
      const u32 size = rank < t.ranks ? pointer<const u32>(t.sizes)[rank] : 0;
      const u32 before = first + sum_before(size);
      if (rank < t.ranks) counters_[rank] = before + *segment.starts(t, rank);
      apart.start(t, of_first, before);
      first = shuffle(before + size, kWarpLanes - 1, kWarpLanes);
    }
    if (lane() < t.apart) counters_[t.ranks + lane()] = *segment.starts(t, t.ranks + lane());
    warp_barrier();
  }
  WARPHASH_FN void write(const OwnerSegments& t, const OwnerSegment& segment) const {
    warp_barrier();
    for (u32 owner = lane(); owner < number_of_owners(t); owner += kWarpLanes)
      *segment.starts(t, owner) = counters_[owner];
  }
  WARPHASH_FN void add(u32 owner, u32 lanes) {
    if (lanes >> lane() & 1) atomic_add(counters_ + owner, 1u);
  }
  WARPHASH_FN u32 take(u32 owner) {
    u32 peers = ~0u;
#pragma unroll
    for (u32 bit = 0; bit < kBits; ++bit) peers &= ~(ballot(owner >> bit & 1) ^ copies_of_bit(owner, bit));
    const u32 counter = counters_[owner], before = bit_count(peers & lanes_before());
    warp_barrier();
    if (before == 0) counters_[owner] = counter + bit_count(peers);
    warp_barrier();
    return counter + before;
  }
};

template <class Batch_, u32 kBlocks_>
struct OverOwnerWarps {
  using Table = OwnerSegments;
  using Batch = Batch_;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kOwnerThreads, kBlocks = kBlocks_;  // on a processor
};

// ---- counts
template <class Counters, class Keys>
struct CountRound {
  const OwnerSegments& t;
  const OwnerBatch& b;
  const Keys& keys;
  Counters& counters;
  template <class Round>
  WARPHASH_FN void operator()(const Round& round) const {
    typename Keys::Loaded key[kOwnerItems];
#pragma unroll
    for (u32 k = 0; k < kOwnerItems; ++k)
      if (round.has(k)) key[k] = keys.load(round.element(k));
    const u32 ranks = static_cast<u32>(t.ranks);
    u32 owner[kOwnerItems];
#pragma unroll
    for (u32 k = 0; k < kOwnerItems; ++k) owner[k] = round.has(k) ? owner_of_shard(keys.shard(key[k]), ranks) : 0;
    for (u32 number = 0; number < t.apart; ++number) {
      const u64 word = pointer<const u64>(t.keys)[number];
#pragma unroll
      for (u32 k = 0; k < kOwnerItems; ++k)
        if (round.has(k) && keys.is(key[k], word)) owner[k] = ranks + number;
    }
    u64 owners = 0;
#pragma unroll
    for (u32 k = 0; k < kOwnerItems; ++k) {
      owners |= static_cast<u64>(owner[k]) << 8 * k;
      counters.add(owner[k], round.lanes_with(k));
    }
    *round.owners(b.owners) = owners;
  }
};

template <class Counters, class Keys>
WARPHASH_FN void count_owners(const OwnerSegments& t, const OwnerBatch& b, const Keys& keys) {
  const OwnerSegment segment(t);
  if (segment.number >= t.segments) return;  // the whole warp
  Counters counters;
  counters.start_with_zeros();
  segment.for_rounds(CountRound<Counters, Keys>{t, b, keys, counters});
  counters.write(t, segment);
}

template <class Counters, class Word>
struct CountOwnersOfWords : OverOwnerWarps<OwnerBatch, 4> {
  WARPHASH_FN static void run(const OwnerSegments& t, const OwnerBatch& b) {
    count_owners<Counters>(t, b, WordKeys<Word>(b));
  }
};

template <class Counters>
struct CountOwnersOfRows : OverOwnerWarps<OwnerBatch, 3> {
  WARPHASH_FN static void run(const OwnerSegments& t, const OwnerBatch& b) { with_rows(b, Count{t, b}); }

 private:
  struct Count {
    const OwnerSegments& t;
    const OwnerBatch& b;
    template <class Keys>
    WARPHASH_FN void operator()(const Keys& keys) const {
      count_owners<Counters>(t, b, keys);
    }
  };
};

// Sums over segments. A block goes through the counts of an owner in tiles. Each warp has 8 * 32 neighbours of a tile.
struct OwnerSums {
  static constexpr u32 kThreads = block_threads(1024), kWarps = kThreads / kWarpLanes, kItems = 8;
  static constexpr u32 kTile = kThreads * kItems;

  // Turns the counts of an owner into sums over the segments before, from `before_tile` on. Returns the sum of all.
  WARPHASH_FN static u32 run(const OwnerSegments& t, u64 owner, u32 before_tile) {
    u32* const sums = static_cast<u32*>(block_memory<kWarps * sizeof(u32)>());
    u32* const starts = pointer<u32>(t.starts) + owner * t.segments;
    const u32 warp = thread_in_block() / kWarpLanes, first = warp * kItems * kWarpLanes + lane();
    for (u64 tile = 0; tile < t.segments; tile += kTile) {
      u32 count[kItems], before[kItems], sum = 0;
#pragma unroll
      for (u32 k = 0; k < kItems; ++k) {
        const u64 segment = tile + first + k * kWarpLanes;
        count[k] = segment < t.segments ? starts[segment] : 0;
      }
#pragma unroll
      for (u32 k = 0; k < kItems; ++k) {
        before[k] = sum + sum_before(count[k]);
        sum = shuffle(before[k] + count[k], kWarpLanes - 1, kWarpLanes);
      }
      if (lane() == 0) sums[warp] = sum;
      block_barrier();
      const u32 of_warp = lane() < kWarps ? sums[lane()] : 0;
      const u32 before_warp = before_tile + warp_sum(lane() < warp ? of_warp : 0u);
      before_tile += warp_sum(of_warp);
#pragma unroll
      for (u32 k = 0; k < kItems; ++k) {
        const u64 segment = tile + first + k * kWarpLanes;
        if (segment < t.segments) starts[segment] = before_warp + before[k];
      }
      block_barrier();  // before the sums of the next tile are written
    }
    return before_tile;
  }
};

// A block has a key apart.
struct SumApart : OverOwnerWarps<OwnerBatch, 1> {
  static constexpr u32 kThreads = OwnerSums::kThreads;
  WARPHASH_FN static void run(const OwnerSegments& t, const OwnerBatch&) {
    const u64 key = thread_in_grid() / kThreads;
    if (key >= t.apart) return;  // the whole block
    const u32 elements = OwnerSums::run(t, t.ranks + key, 0);
    if (thread_in_block() == 0) pointer<u32>(t.sizes)[t.ranks + key] = elements != 0;
  }
};

// A block has a rank.
struct SumOwners : OverOwnerWarps<OwnerBatch, 1> {
  static constexpr u32 kThreads = OwnerSums::kThreads;
  WARPHASH_FN static void run(const OwnerSegments& t, const OwnerBatch& b) {
    const u64 rank = thread_in_grid() / kThreads;
    if (rank >= t.ranks) return;  // the whole block
    const u32 apart = rows_apart(t, static_cast<u32>(rank), thread_in_block() == 0);
    const u32 rows = OwnerSums::run(t, rank, apart);
    if (thread_in_block() == 0) {
      pointer<u32>(t.sizes)[rank] = rows_of_run(t, rows);
      pointer<u64>(b.counts)[rank] = rows;
    }
  }
};

// ---- columns
// The place of this lane's element, or kNoPlace. All lanes call.
template <bool kRestores, bool kApart, class Counters>
WARPHASH_FN u32 next_place(const OwnerSegments& t, const OwnerMoveBatch& b, Counters& counters, u32 owner) {
  const u32 place = counters.take(owner);
  if constexpr (kApart) {
    const u32 of_key = counters.apart.of(t, owner);
    if (owner >= t.ranks) return place_apart<kRestores>(place, of_key, b.once);
  }
  return place;
}

// Rows that are words.
template <class Counters, class Word, bool kRestores>
struct MoveOwnedWords : OverOwnerWarps<OwnerMoveBatch, sizeof(Word) == 16 ? 3 : 4> {
  WARPHASH_FN static void run(const OwnerSegments& t, const OwnerMoveBatch& b) {
    const OwnerSegment segment(t);
    if (segment.number >= t.segments) return;  // the whole warp
    const Word* const source = in_global(pointer<const Word>(b.source));
    Word* const target = in_global(pointer<Word>(b.target));
    Counters counters;
    counters.start_with_places(t, segment);
    if (t.apart)
      segment.for_rounds(Move<true>{t, b, source, target, counters});
    else
      segment.for_rounds(Move<false>{t, b, source, target, counters});
  }

 private:
  template <bool kApart>
  struct Move {
    const OwnerSegments& t;
    const OwnerMoveBatch& b;
    const Word* const source;
    Word* const target;
    Counters& counters;
    template <class Round>
    WARPHASH_FN void operator()(const Round& round) const {
      const u64 owners = load_once(round.owners(b.owners));
      Word word[kOwnerItems];
      u32 place[kOwnerItems];
      if constexpr (!kRestores) {
#pragma unroll
        for (u32 k = 0; k < kOwnerItems; ++k)
          if (round.has(k)) word[k] = load_once(source + round.element(k));
      }
#pragma unroll
      for (u32 k = 0; k < kOwnerItems; ++k) {
        place[k] = next_place<kRestores, kApart>(t, b, counters, owner_in(owners, k));
        if (!kRestores && round.has(k) && (!kApart || place[k] != kNoPlace)) target[place[k]] = word[k];
      }
      if constexpr (kRestores) {
#pragma unroll
        for (u32 k = 0; k < kOwnerItems; ++k)
          if (round.has(k)) word[k] = kApart && place[k] == kNoPlace ? Word{} : source[place[k]];
#pragma unroll
        for (u32 k = 0; k < kOwnerItems; ++k)
          if (round.has(k)) target[round.element(k)] = word[k];
      }
    }
  };
};

// Rows of several words. The lanes of a warp copy 32 rows together: neighbours have neighbouring words.
template <class Counters, bool kRestores>
struct MoveOwnedRows : OverOwnerWarps<OwnerMoveBatch, 4> {
  WARPHASH_FN static void run(const OwnerSegments& t, const OwnerMoveBatch& b) {
    const OwnerSegment segment(t);
    if (segment.number >= t.segments) return;  // the whole warp
    Counters counters;
    counters.start_with_places(t, segment);
    if (t.apart)
      segment.for_rounds(Move<true>{t, b, counters});
    else
      segment.for_rounds(Move<false>{t, b, counters});
  }

 private:
  template <bool kApart>
  struct Move {
    const OwnerSegments& t;
    const OwnerMoveBatch& b;
    Counters& counters;
    template <class Round>
    WARPHASH_FN void operator()(const Round& round) const {
      const u8* const owners = reinterpret_cast<const u8*>(round.owners(b.owners));
#pragma unroll 1
      for (u32 k = 0; k < kOwnerItems; ++k) {
        const u32 place = next_place<kRestores, kApart>(t, b, counters, owners[k]);
        copy(b, round.first + k * kWarpLanes, place, bit_count(round.lanes_with(k)));
      }
    }
  };

  // Of the elements from `first` on, one a lane, which have these places.
  WARPHASH_FN static void copy(const OwnerMoveBatch& b, u64 first, u32 place, u32 rows) {
    switch (b.row_word) {
      case 16:
        return copy_words<Quad>(b, first, place, rows);
      case 8:
        return copy_words<u64>(b, first, place, rows);
      case 4:
        return copy_words<u32>(b, first, place, rows);
      case 2:
        return copy_words<u16>(b, first, place, rows);
      default:
        return copy_words<u8>(b, first, place, rows);
    }
  }

  template <class Word>
  WARPHASH_FN static void copy_words(const OwnerMoveBatch& b, u64 first, u32 place, u32 rows) {
    const Word* const source = in_global(pointer<const Word>(b.source));
    Word* const target = in_global(pointer<Word>(b.target));
    const u32 words = static_cast<u32>(b.row_bytes / sizeof(Word));  // of a row
    const u32 next_row = kWarpLanes / words, next_word = kWarpLanes % words;
    u32 row = lane() / words, word = lane() % words;
#pragma unroll 4
    for (u32 step = 0; step < words; ++step) {
      const u64 from = first + row;
      const u32 to = shuffle(place, row, kWarpLanes);
      if (row < rows) {
        if constexpr (kRestores)
          target[from * words + word] = to == kNoPlace ? Word{} : source[static_cast<u64>(to) * words + word];
        else if (to != kNoPlace)
          target[static_cast<u64>(to) * words + word] = source[from * words + word];
      }
      row += next_row, word += next_word;
      if (word >= words) word -= words, ++row;
    }
  }
};

}  // namespace warphash
