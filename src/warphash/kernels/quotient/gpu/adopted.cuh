// Pairs that a table has adopted: keys of a batch that found no slot, while the host has gone on, and the caller may have
// changed the batch since. They are the table's until the host gives them slots (storage/quotient/store.py). Updates and
// erases that follow in the stream find them here. There are none but by a freak of the hash constants, or by design of
// the caller.
//
// Layout. Pair k has key k and value k of two arrays. AdoptedPairs has the heads of lists, by a hash of the key. `next`
// of pair k leads to the pair before it in its list:
//
//   next   bit  31      30                          0
//               +--------+--------------------------+
//               | erased | number of that pair + 1  |      0: pair k is the first of its list
//               +--------+--------------------------+
//
// Numbers fall along a list. So a search for the pairs that came since a moment ends at the first older one. An erased
// pair stays in its list. If its key comes again, it has another pair.
//
// Protocol. One thread of a kernel adopts, while no other thread looks here: a barrier or the end of the kernel comes
// between. An erase sets a bit, and the old word tells the one lane that has erased the pair.
//
// Memory order: relaxed.
#pragma once
#include "core/bulk.cuh"
#include "quotient/gpu/abi.cuh"
#include "quotient/place.cuh"

namespace warphash {

template <class D>
struct Adopted {
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename S::Value;
  static constexpr u32 kErasedPair = 1u << 31, kNobody = ~0u;

  const OneLaunchBatch& b;

  WARPHASH_FN u32 count() const { return b.adopted ? static_cast<u32>(load_relaxed(&all().pairs)) : 0; }

  // Whether a pair among those from number `since` on has the key. Its value is then replaced, if the batch says so.
  WARPHASH_FN bool has(Word key, Value operand, u32 since = 0) const {
    const u32 at = find(key, since);
    if (at == kNobody) return false;
    if (S::kHasValue && b.op == kReplace) store_relaxed(pointer<Value>(b.adopted_values) + at, operand);
    return true;
  }
  // Whether this lane has erased the pair of the key.
  WARPHASH_FN bool erase(Word key) const {
    for (;;) {
      const u32 at = find(key, 0);
      if (at == kNobody) return false;
      if (!(fetch_or(nexts() + at, kErasedPair) & kErasedPair)) return true;
    }
  }
  // As pair `number`: the next one.
  WARPHASH_FN void add(u32 number, Word key, Value value) const {
    u64& head = all().lists[list_of(key)];
    pointer<Word>(b.adopted_keys)[number] = key;
    if constexpr (S::kHasValue) pointer<Value>(b.adopted_values)[number] = value;
    nexts()[number] = static_cast<u32>(head);
    head = number + 1;
    all().pairs = number + 1;
  }

 private:
  WARPHASH_FN AdoptedPairs& all() const { return *pointer<AdoptedPairs>(b.adopted); }
  WARPHASH_FN u32* nexts() const { return pointer<u32>(b.adopted_next); }
  WARPHASH_FN static u32 list_of(Word key) { return D::mixed(key) % kAdoptedLists; }
  WARPHASH_FN u32 find(Word key, u32 since) const {
    u32 at = static_cast<u32>(load_relaxed(&all().lists[list_of(key)]));
    while (at > since) {
      const u32 next = load_relaxed(nexts() + at - 1);
      if (!(next & kErasedPair) && pointer<const Word>(b.adopted_keys)[at - 1] == key) return at - 1;
      at = next & ~kErasedPair;
    }
    return kNobody;
  }
};

}  // namespace warphash
