// Upkeep of tables whose buckets are lists (chains/slab_slots.cuh). No other kernel changes the table meanwhile.
//
//   flush    packs the live pairs of lists into their first nodes, in order, and frees the others: max(1, ceil(live /
//            pairs of a node)) stay (A Dynamic Hash Table for the GPU, section IV-C). Element i is list first_list + i.
//            Report::changed counts the erased slots that are gone, erased the nodes that are free.
//   scan     copies all pairs out, list by list, each list in its order. (By lists: only the first node of a list tells
//            whether its keys are reserved.)
//   relist   places the pairs of another table's lists; element i is list i. A list is walked in order by one lane, and
//            a key lives in one list: so the pairs of one key keep their order (designs/slab.cuh, MultiMap).
#pragma once
#include "chains/append.cuh"

namespace warphash {

// The slots of a list one by one, from its first node on.
template <class S>
struct Cursor {
  using Item = typename S::Item;
  Item* node;
  u32 address;  // of a node of the pool; kNoSlab: of the first
  int slot;

  WARPHASH_FN static Cursor first(Item* node) { return {node, kNoSlab, 0}; }
  WARPHASH_FN static Item* node_at(const Pool& pool, u32 address) {
    return static_cast<Item*>(slab_at(pool, address, S::kBucketBytes));
  }
  // Goes to the next node; false if there is none.
  WARPHASH_FN bool follow(const Pool& pool) {
    const u32 next = *S::next_of(node);
    if (next == kNoSlab) return false;
    *this = {node_at(pool, next), next, 0};
    return true;
  }
  // Goes to a slot that was used, this one or one behind it; false at the end of the list.
  WARPHASH_FN bool settle(const Pool& pool) {
    return (slot < S::kDataSlots || follow(pool)) && !S::is_empty(node[slot]);
  }
};

template <class D>
struct Flush {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Item = typename S::Item;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {
    u32 reclaimed, freed;
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    Pool& pool = pool_of(t);
    s = {0, 0};
    Cursor<S> from = Cursor<S>::first(S::at(t, static_cast<u32>(b.first_list + i)));
    Cursor<S> to = from;
    for (; from.settle(pool); ++from.slot) {
      const Item item = from.node[from.slot];
      if (!S::holds_key(item)) {
        ++s.reclaimed;
        continue;
      }
      if (to.slot == S::kDataSlots) to.follow(pool);
      to.node[to.slot++] = item;
    }
    if (!s.reclaimed) return false;
    for (int rest = to.slot; rest < S::kDataSlots; ++rest) to.node[rest] = S::empty();
    u32 next = *S::next_of(to.node);
    *S::next_of(to.node) = kNoSlab;
    while (next != kNoSlab) {
      const u32 last = next;
      next = *S::next_of(Cursor<S>::node_at(pool, last));
      wipe_slab(pool, last);
      release_slab(pool, last);
      ++s.freed;
    }
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    tally.changed += s.reclaimed;
    tally.erased += s.freed;
  }
};

template <class D>
struct ScanLists {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = true;
  static constexpr int kLists = 0;
  struct State {};
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    const Pool& pool = pool_of(t);
    const Cursor<S> first = Cursor<S>::first(S::at(t, static_cast<u32>(b.first_list + i)));
    u64 live = 0;
    for (Cursor<S> at = first; at.settle(pool); ++at.slot) live += S::holds_key(at.node[at.slot]);
    if (live == 0) return false;
    u64 place = fetch_add(&report_of(b)->winners, live);
    for (Cursor<S> at = first; at.settle(pool); ++at.slot) {
      const typename S::Item item = at.node[at.slot];
      if (S::holds_key(item)) put(b, item, b.first_list + i >= t.buckets, place++);
    }
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}

 private:
  WARPHASH_FN static void put(const Batch& b, const typename S::Item& item, bool reserved, u64 place) {
    if (place >= b.room) return;
    if (b.out_keys) pointer<Word>(b.out_keys)[place] = static_cast<Word>(reserved ? item.key + S::kBusy : item.key);
    if (S::kHasValue && b.out_values) pointer<Word>(b.out_values)[place] = item.payload();
  }
};

template <class D>
struct Relist : Append<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  struct State : Append<D>::State {
    Cursor<S> from;
    bool reserved;
    u32 placed;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.from = Cursor<S>::first(pointer<typename S::Item>(b.source_nodes) + i * S::kSlots);
    s.reserved = i >= b.source_buckets;
    s.placed = 0;
    s.outcome = Placed::kInserted;
    s.placement.spare = kNoSlab;
    return next(t, b, s);
  }
  // Takes up the next live pair; false if there is none.
  WARPHASH_FN static bool next(const Table& t, const Batch& b, State& s) {
    for (; s.from.settle(*pointer<const Pool>(b.source_pool)); ++s.from.slot) {
      const typename S::Item item = s.from.node[s.from.slot];
      if (!S::holds_key(item)) continue;
      ++s.from.slot;
      const Word key = s.reserved ? item.key + S::kBusy : item.key;
      const u32 spare = s.placement.spare;
      s.placement = D::start(Probe<S>::start(t, key), item.payload(), 0);
      s.placement.spare = spare;
      s.way = Way<S>::from(s.placement.bucket);
      return true;
    }
    return false;
  }
  WARPHASH_FN static bool step(const Table& t, const Batch& b, State& s, const BucketView<S>& seen) {
    if (!Append<D>::step(t, b, s, seen)) return false;
    ++s.placed;
    return !next(t, b, s);
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64, State& s, bool live, Tally& tally) {
    if (!live) return;
    D::end(t, s.placement);
    tally.changed += s.placed;
    if (s.outcome == Placed::kNoRoom) atomic_add(&report_of(b)->unplaced, 1ull);
  }
};

}  // namespace warphash
