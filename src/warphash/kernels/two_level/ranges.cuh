// The memory of a two-level table: a directory of buckets, and a range of slots for each bucket.
//
// Layout of an entry of the directory (bytes)
//   0             8          12         16
//   +------ 64 ---+--- 32 ---+--- 32 ---+
//   |   address   |  slots   |   seed   |     of the bucket's range; its size; what its hash functions are drawn from
//   +-------------+----------+----------+
//
// A range of n slots (core/slot.cuh) is m subtables of n / m slots each, and less than m slots that nobody uses:
//   +----- subtable 0 -----+----- subtable 1 -----+ ... +
//   | slots of function 0  | slots of function 1  |     |
//   +----------------------+----------------------+ ... +
// A range may lie anywhere: buckets can be given larger ranges one by one.
//
// Beside the directory there is a counter of 4 bytes for each bucket. Between two operations each counter is kNoElement.
// An insert keeps there the head of the list of the elements that go to the bucket; a build counts there the pairs of
// the bucket. kBucketFailed marks a bucket for which no layout was found, until the host has seen it.
//
// The reserved keys (core/slot.cuh) have a slot each, behind all hash functions: the slot of their name.
//
// Why an entry of 16 bytes. A find reads one entry, in one load. A table of 50 M pairs has some 140,000 buckets, so all
// entries take 2.2 MB and stay in the second-level cache, which gives 127 G random reads a second where memory gives 40
// (results of `warphash bench ceilings`). The memory behind an entry costs more: it is read 1.28 times for a key.
#pragma once
#include "core/bulk.cuh"
#include "two_level/abi.cuh"

namespace warphash {

struct Range {
  u64 address;
  u32 slots;
  u32 seed;
};

// A range as the directory has it: two words, which the compiler reads in one load. (Of three, it makes two loads.)
struct alignas(16) RangeEntry {
  u64 address;
  u64 slots_and_seed;
  WARPHASH_FN static RangeEntry of(const Range& r) { return {r.address, static_cast<u64>(r.seed) << 32 | r.slots}; }
  WARPHASH_FN Range range() const {
    return {address, static_cast<u32>(slots_and_seed), static_cast<u32>(slots_and_seed >> 32)};
  }
};

constexpr u32 kMostRangeSlots = 2048;  // what a block places in the memory that it shares
constexpr u32 kNoElement = ~0u;
constexpr u32 kBucketFailed = ~1u;

template <class S>
struct Ranges {
  using Item = typename S::Item;
  WARPHASH_FN static RangeEntry* entry(const TwoLevelTable& t, u32 bucket) {
    WARPHASH_ASSERT(bucket < t.buckets);
    return in_global(pointer<RangeEntry>(t.directory) + bucket);
  }
  WARPHASH_FN static u32* counter(const TwoLevelTable& t, u32 bucket) {
    return in_global(pointer<u32>(t.counters) + bucket);
  }
  WARPHASH_FN static Item* slots(const Range& range) { return in_global(pointer<Item>(range.address)); }
  WARPHASH_FN static Item* reserved_slot(const TwoLevelTable& t, typename S::Word name) {
    return in_global(pointer<Item>(t.reserved) + static_cast<u32>(name));
  }
  WARPHASH_FN static u32 subtable_slots(const TwoLevelTable& t, const Range& range) {
    return range.slots / static_cast<u32>(t.hashes);
  }
};

// What the tasks take of a design: the bucket of a key, and the slot that a function of the bucket gives it among `end`.
template <class D>
concept HasTwoLevels = requires(const TwoLevelTable& t, typename D::S::Word key) {
  { D::bucket_of(t, key) } -> Same<u32>;
  { D::slot_of(t, key, u32(), u32(), u32()) } -> Same<u32>;
};

// Two-level design D's way of one key: the entry of its bucket, then the slot of one function after another. The way
// ends at the key; behind the last function; or at a slot that was never used, as no key ever passed that slot.
template <HasTwoLevels D, bool kFrozen>
struct RangeSearch {
  using S = typename D::S;
  using Word = typename S::Word;
  using Item = typename S::Item;
  Named<S> named;
  u32 bucket;
  u32 function;
  Range range;
  Item* slot;  // that the next step reads; null where a CPU asks for the entry of the bucket first
  Item seen;   // the slot that was read last
  bool found;

  WARPHASH_FN static RangeSearch start(const TwoLevelTable& t, Word key) {
    RangeSearch s{Named<S>::of(key), 0, 0, {0, 0, 0}, nullptr, S::empty(), false};
    if (s.named.reserved) {
      s.slot = Ranges<S>::reserved_slot(t, s.named.key);
    } else {
      s.bucket = D::bucket_of(t, s.named.key);
      if (!kPrefetches) s.open(t);
    }
    return s;
  }
  WARPHASH_FN bool opens() const { return kPrefetches && slot == nullptr; }
  WARPHASH_FN void open(const TwoLevelTable& t) {
    const RangeEntry entry = *Ranges<S>::entry(t, bucket);
    range = entry.range();
    slot = slot_at(t, 0);
  }
  WARPHASH_FN Item* slot_at(const TwoLevelTable& t, u32 i) const {
    const u32 end = Ranges<S>::subtable_slots(t, range);
    return Ranges<S>::slots(range) + (i * end + D::slot_of(t, named.key, range.seed, i, end));
  }
  // Reads the slot; true if it has the key.
  WARPHASH_FN bool look() {
    seen = load_slot<kFrozen>(slot);
    return found = seen.key == named.key;
  }
  // To the slot of the next function; false if the key cannot be there.
  WARPHASH_FN bool advance(const TwoLevelTable& t) {
    if (named.reserved || S::is_empty(seen) || ++function == t.hashes) return false;
    slot = slot_at(t, function);
    return true;
  }
  // One step of a search; true at its end.
  WARPHASH_FN bool step(const TwoLevelTable& t) {
    if (opens()) {
      open(t);
      return false;
    }
    return look() || !advance(t);
  }
  WARPHASH_FN const void* next(const TwoLevelTable& t) const {
    if (opens()) return Ranges<S>::entry(t, bucket);
    return slot;
  }
};

}  // namespace warphash
