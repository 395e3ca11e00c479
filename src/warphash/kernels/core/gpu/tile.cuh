// How the lanes of a GPU read a bucket together, and what they learn from it.
//
// Layout. A bucket is read in parts of up to kPartBytes. kLanes neighbouring lanes read a part: lane r has its r-th
// kLaneBytes, in vectors of 16 bytes. In lines whose slots fit into a vector (kSpread), lane r has the r-th vector and
// the one that is kLanes further on. So a load of the tile reads whole sectors of 32 bytes, each once. Buckets of up to
// 32 bytes have one lane. In a list, where keys may repeat, the first lane that holds a key has its first slot.
//
// Protocol: every lane of a tile loads its piece; ballots tell all of them where the key is, which slot is vacant
// first, and whether the bucket is open.
//
// Why. A load of 16 bytes is one instruction, and so is a load of 8. With two loads of 16 for each lane, two lanes read
// a line of 64, and a warp has more lines in flight than with a lane for each slot (docs/performance/find.md).
#pragma once
#include "core/bucket.cuh"

namespace warphash {

constexpr int kLaneBytesWanted = 32;

WARPHASH_FN constexpr int at_most(int x, int bound) { return x < bound ? x : bound; }
WARPHASH_FN constexpr int at_least(int x, int bound) { return x > bound ? x : bound; }

template <class S, int kPartBytesWanted>
struct Tile {
  using Word = typename S::Word;
  using Item = typename S::Item;
  static constexpr int kPartBytes = at_most(S::kLookBytes, kPartBytesWanted);
  static constexpr int kParts = S::kLookBytes / kPartBytes;
  static constexpr int kPartSlots = S::kSlots / kParts;
  static constexpr int kLaneBytes = at_most(kPartBytes, at_least(kLaneBytesWanted, static_cast<int>(sizeof(Item))));
  static constexpr int kLanes = kPartBytes / kLaneBytes;
  static constexpr int kPerLane = kLaneBytes / static_cast<int>(sizeof(Item));
  static constexpr int kPerVector = kLaneBytes < 16 ? 1 : 16 / static_cast<int>(sizeof(Item));
  static constexpr int kPerPiece = S::kSpread ? kPerVector : kPerLane;  // slots of a lane that are neighbours
  static_assert(kLanes <= 32 && kLanes * kLaneBytes == kPartBytes, "a part is a power of two of lanes");

  // What the lanes of a tile learn of a part; slots are counted from its first.
  struct Glance {
    i32 hit;     // slot of the key, or -1
    i32 vacant;  // first vacant slot, or kPartSlots
    bool open;   // the slot in question was never used
    bool ends;   // the last slot was never used: the next parts are empty
    Item item;
    u32 next;  // of a node
    u32 hits;  // all slots of the key, where asked for
  };

  Item slots[kPerLane];

  WARPHASH_FN static i32 slot_of(int j, i32 rank) { return slot_of_first(j) + rank * kPerPiece; }
  WARPHASH_FN static constexpr i32 slot_of_first(int j) { return j / kPerPiece * kLanes * kPerPiece + j % kPerPiece; }

  template <bool kFrozen>
  WARPHASH_FN void load(const Item* part, i32 rank) {
    if constexpr (kLaneBytes < 16) {
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) slots[j] = load_slot<kFrozen>(part + j);
    } else if constexpr (sizeof(Word) > 8) {  // nothing swaps such a slot whole
      struct Vectors {
        Quad quads[kLaneBytes / 16];
      } read;
      constexpr bool kRestFollows = kLaneBytes > kLaneBytesWanted;
      const char* from = reinterpret_cast<const char*>(part) + rank * (S::kSpread ? 16 : kLaneBytes);
#pragma unroll
      for (int v = 0; v < kLaneBytes / 16; ++v)
        read.quads[v] = load_16_bytes<kFrozen, kRestFollows>(from + 16 * v * (S::kSpread ? kLanes : 1));
      struct Slots {
        Item items[kPerLane];
      };
      const Slots all = __builtin_bit_cast(Slots, read);
#pragma unroll
      for (int j = 0; j < kPerLane; ++j) slots[j] = all.items[j];
    } else {
      struct Vector {
        Item items[kPerVector];
      };
#pragma unroll
      for (int j = 0; j < kPerLane; j += kPerVector) {
        const Vector x = __builtin_bit_cast(Vector, load_quad<kFrozen>(part + slot_of(j, rank)));
#pragma unroll
        for (int k = 0; k < kPerVector; ++k) slots[j + k] = x.items[k];
      }
    }
  }

  // Every lane of the warp calls this for the same owner of each tile. All lanes of the tile get the same answer.
  template <bool kVacancy, bool kAll, bool kWhere>
  WARPHASH_FN Glance look(Word key, i32 opening, i32 rank) const {
    constexpr i32 kNone = slot_of_first(kPerLane - 1) + 1;
    i32 hit = kNone, vacant = kNone;  // of lane 0, until `rank` is added
    bool here = false, open = false, ends = false;
    u32 hits = 0;
    Item item = slots[0];
#pragma unroll
    for (int j = kPerLane - 1; j >= 0; --j) {
      const bool data = !S::kLinked || slot_of(j, rank) < S::kDataSlots;
      if (data && slots[j].key == key)
        here = true, hit = slot_of_first(j), item = slots[j], hits |= 1u << slot_of(j, rank);
      if (kVacancy && data && S::is_vacant(slots[j])) vacant = slot_of_first(j);
      if (!S::kLinked) open |= slot_of(j, rank) == opening && S::is_empty(slots[j]);
    }
    if (kParts > 1) ends = rank == kLanes - 1 && S::is_empty(slots[kPerLane - 1]);
    if constexpr (kLanes == 1) {
      const u32 next = S::kLinked ? S::next_in(slots[kPerLane - 1]) : kNowhere;
      return {hit < kNone ? hit : -1, vacant, open, ends, item, next, hits};
    } else {
      const u32 first = lane() & ~static_cast<u32>(kLanes - 1);
      constexpr u32 kMask = kLanes == 32 ? ~0u : (1u << kLanes) - 1;
      const auto vote = [&](bool yes) { return (ballot(yes) >> first) & kMask; };
      Glance seen;
      const u32 holders = vote(kWhere ? hit < kNone : here);
      const u32 from = holders ? first_bit(holders) : 0;
      if (kWhere)
        hit = static_cast<i32>(shuffle(static_cast<u32>(hit), from, kLanes)) + static_cast<i32>(from) * kPerPiece;
      seen.hit = holders ? (kWhere ? hit : 0) : -1;
      seen.item = Item::make(key, Item::kValued ? shuffle(item.payload(), from, kLanes) : item.payload());
      seen.open = !S::kLinked && vote(open) != 0;
      seen.ends = kParts > 1 && vote(ends) != 0;
      if constexpr (S::kLinked) seen.next = shuffle(S::next_in(slots[kPerLane - 1]), kLanes - 1, kLanes);
      if constexpr (kAll) {
#pragma unroll
        for (int distance = 1; distance < kLanes; distance *= 2) hits |= shuffle(hits, lane() ^ distance, kLanes);
        seen.hits = hits;
      }
      if constexpr (kVacancy) {
        vacant = vacant < kNone ? vacant + rank * kPerPiece : kPartSlots;
#pragma unroll
        for (int distance = 1; distance < kLanes; distance *= 2) {
          const i32 other = static_cast<i32>(shuffle(static_cast<u32>(vacant), lane() ^ distance, kLanes));
          if (other < vacant) vacant = other;
        }
      }
      seen.vacant = vacant;
      return seen;
    }
  }
};

}  // namespace warphash
