// Repeated keys of an update that changes values: combined ahead of the table, a block at a time.
//
//   aggregate44, 48, 84, 88  copies elements out; of the elements with a hot key, many become one
//                            (bytes of a key, bytes of a value)
//   repeats4, 8              counts the repeated keys of two samples, in one block (bytes of a key)
//   spread                   brings the flags of what was left back to the batch
//
// Why. All elements of one key write one word, and a GPU does one such access a clock: 50 million sums into one key run
// at 0.84 G/s, where different keys reach 8 (H200). Atomics on memory that a block shares run side by side on all
// processors. So each block keeps the keys that it has seen in a table of its own, and sends on one element for each.
// (Databases call this local pre-aggregation.)
//
// Layout of the memory of a block, 2^11 entries:
//
//   values  [ value of entry 0 | entry 1 | … ]         words of 4 or 8 bytes
//   keys    [ key of entry 0   | entry 1 | … ]         words of 4 or 8 bytes
//   owners  [ element 32       | … ]                   kNowhere: the entry is free
//   listed 32, flushes 32, base 64                     of the list that is being copied out
//   with_open 2 x 32, with_free 2 x 32                 the last row, of the odd and of the even ones, with an element
//                                                      that has no entry, and with one that has a free entry
//
// A key has two entries where it may be, by two pieces of a hash. It takes the first unless that has another key.
//
// Protocol. A block walks over a stretch of the batch in rows of kItems elements for each thread. In a row:
//   1. If all lanes of a warp have one key, they combine their values, and one lane goes on. So sorted keys and equal
//      keys cost a warp one atomic.
//   2. An element whose key has an entry combines its value into that of the entry. A barrier. If no element of the row
//      has a free entry, go to step 4. When the hot keys have their entries, this holds for nearly all rows.
//   3. Twice, for the first entry and for the second: an element whose entry is free swaps its number in as the owner
//      (relaxed). Who wins writes its key and its value there. A barrier. The others do step 2 once more.
//   4. What has no entry is left: it is copied out. A block reserves places for its row by one addition to `length`.
//   5. If more than 7/8 of the row are left, all entries are copied out, and the table is cleared: the hot keys have
//      changed, as they do in sorted input.
// At the end all entries are copied out. The loads of a row are under way while the block works on the row before.
//
// While keys are compared, entries keep theirs: entries are taken in step 3 alone, and cleared in step 5, with a barrier
// before and after. So two elements of one key never take two entries of one table. One key may be left several times,
// by several blocks, or by one block that has cleared its table. The table takes such repeated keys as those of any
// batch.
//
// Memory order. Relaxed throughout: barriers publish keys and owners to the block, the end of the kernel publishes the
// output. Values are read by others behind a barrier, too.
#pragma once
#include "aggregates/abi.cuh"
#include "core/hash.cuh"
#include "core/straight.cuh"
#include "core/value.cuh"

namespace warphash {

constexpr u32 kEntryBits = 11, kEntries = 1u << kEntryBits;
constexpr u32 kAggregatingThreads = 256;

// As combine(), for memory that a block shares: only combine() may name the global memory. Of values that replace each
// other, the first one stays.
template <class Word>
WARPHASH_FN void combine_in_block(Word* at, Word operand, u64 op, u64 kind) {
  if (op == kReplace) return;
  const bool whole_word = kind_bits(kind) == 8 * sizeof(Word);
  if (op == kAdd && whole_word && kind_class(kind) != kFloat) return atomic_add(at, operand);
  Word old = *const_cast<const volatile Word*>(at);
  for (;;) {
    const Word wanted = static_cast<Word>(combine_bits(op, kind, old, operand));
    if (wanted == old) return;
    const Word seen = compare_exchange_word(at, old, wanted);
    if (seen == old) return;
    old = seen;
  }
}

template <class Key, class Value>
struct Aggregate {
  using Table = Aggregation;
  using Batch = AggregateBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kAggregatingThreads, kBlocks = 4;
  static constexpr u32 kItems = 4;  // elements of a thread in a row

  struct Shared {
    Value values[kEntries];
    Key keys[kEntries];
    u32 owners[kEntries];
    u32 with_open[2], with_free[2];
    u32 listed, flushes;
    u64 base;
  };

  // The elements of this thread in a row. Bit k of `open` is set while element k has no entry.
  struct Loaded {
    Key key[kItems];
    Value value[kItems];
    u32 first;  // element 0 of the block
    u32 open;
  };
  struct Row : Loaded {
    u32 places[kItems];  // two entries of kEntryBits each
    WARPHASH_FN Row(const Table& t, const Loaded& loaded) : Loaded(loaded) {
#pragma unroll
      for (u32 k = 0; k < kItems; ++k)
        places[k] = static_cast<u32>(mix(static_cast<u64>(this->key[k]) ^ t.seed) >> (64 - 2 * kEntryBits));
    }
    WARPHASH_FN u32 element(u32 k) const { return this->first + k * threads_in_block() + thread_in_block(); }
    WARPHASH_FN bool is_open(u32 k) const { return this->open >> k & 1; }
    WARPHASH_FN u32 place(u32 k, u32 probe) const { return (places[k] >> (probe * kEntryBits)) & (kEntries - 1); }
  };

  // Element j of the row lies at index(j), and is there if that is less than `end`. Values are read if there are any.
  template <class Index>
  WARPHASH_FN static Loaded load(const Batch& b, u64 first, u64 end, const Index& index) {
    Loaded row;
    row.first = static_cast<u32>(first), row.open = 0;
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      const u64 i = index(k * threads_in_block() + thread_in_block());
      const bool live = i < end;
      row.key[k] = live ? load_once(reinterpret_cast<const Key*>(b.keys) + i) : Key{};
      row.value[k] = live && b.values ? load_once(reinterpret_cast<const Value*>(b.values) + i) : Value{};
      row.open |= static_cast<u32>(live) << k;
    }
    return row;
  }

  // Step 1. Whole warps call it.
  WARPHASH_FN static void sum_equal_lanes(const Batch& b, Row& row) {
    const bool adds = b.op == kAdd && kind_bits(b.kind) == 8 * sizeof(Value) && kind_class(b.kind) != kFloat;
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      const Key first = shuffle(row.key[k], 0, kWarpLanes);
      if (any(!row.is_open(k) || row.key[k] != first)) continue;
      if (adds)
        add_up(row.value[k]);
      else if (b.op != kReplace)
        combine_all(b, row.value[k]);
      if (lane()) row.open &= ~(1u << k);
    }
  }
  WARPHASH_FN static void add_up(Value& value) {
#pragma unroll
    for (u32 distance = kWarpLanes / 2; distance; distance /= 2) value += shuffle(value, lane() ^ distance, kWarpLanes);
  }
  WARPHASH_FN static void combine_all(const Batch& b, Value& value) {
#pragma unroll 1  // five copies would take the compiler long
    for (u32 distance = kWarpLanes / 2; distance; distance /= 2) {
      const Value other = shuffle(value, lane() ^ distance, kWarpLanes);
      value = static_cast<Value>(combine_bits(b.op, b.kind, value, other));
    }
  }

  // Step 2, and the comparisons of step 3; how many elements of this thread found their key. Sets `free` if one of those
  // that are left has a free entry.
  WARPHASH_FN static u32 combine_known(const Batch& b, Shared& shared, Row& row, bool& free) {
    u32 found = 0;
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      if (!row.is_open(k)) continue;
      u32 known = kNowhere;
      bool has_free = false;
#pragma unroll
      for (u32 probe = 0; probe < 2; ++probe) {
        const u32 at = row.place(k, probe);
        const bool taken = shared.owners[at] != kNowhere;
        has_free |= !taken;
        if (taken && shared.keys[at] == row.key[k]) known = at;
      }
      free |= has_free && known == kNowhere;
      if (known == kNowhere) continue;
      combine_in_block(shared.values + known, row.value[k], b.op, b.kind);
      row.open &= ~(1u << k);
      ++found;
    }
    return found;
  }

  WARPHASH_FN static void claim(Shared& shared, Row& row, u32 probe) {
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      const u32 at = row.place(k, probe);
      if (!row.is_open(k) || *const_cast<const volatile u32*>(shared.owners + at) != kNowhere) continue;
      if (compare_exchange_word(shared.owners + at, kNowhere, row.element(k)) != kNowhere) continue;
      shared.keys[at] = row.key[k];
      shared.values[at] = row.value[k];
      row.open &= ~(1u << k);
    }
  }

  // Steps 2 and 3 for row `turn` of a block, the first of which is 1. False if no element of the block is left; adds up
  // how many of this thread found their key. Whole blocks call it.
  WARPHASH_FN static bool enter(const Batch& b, Shared& shared, Row& row, u32 turn, u32& found) {
    u32 *const with_open = &shared.with_open[turn & 1], *const with_free = &shared.with_free[turn & 1];
#pragma unroll 1
    for (u32 probe = 0;; ++probe) {
      bool free = false;
      found += combine_known(b, shared, row, free);
      if (probe == 2) return true;
      if (probe == 0) {
        const bool open = any(row.open != 0);
        free = any(free);
        if (open && lane() == 0) exchange(with_open, turn);
        if (free && lane() == 0) exchange(with_free, turn);
      }
      block_barrier();  // before entries are taken
      if (probe == 0 && *with_free != turn) return *with_open == turn;
      claim(shared, row, probe);
      block_barrier();  // before keys are compared
    }
  }

  // Frees all entries. Whole blocks call it.
  WARPHASH_FN static Shared& cleared() {
    Shared& shared = *static_cast<Shared*>(block_memory<sizeof(Shared)>());
    for (u32 at = thread_in_block(); at < kEntries; at += threads_in_block()) shared.owners[at] = kNowhere;
    if (thread_in_block() == 0) {
      shared.with_open[0] = shared.with_open[1] = shared.with_free[0] = shared.with_free[1] = 0;
      shared.listed = 0;
    }
    block_barrier();
    return shared;
  }

  // Copies out the elements of the bits of `mask`. send(k, place) copies that of bit k. While all others wait, the
  // first thread calls between(n) with how many go. Whole blocks call it.
  template <class Send, class Between>
  WARPHASH_FN static void copy_out(const Batch& b, Shared& shared, u32 mask, const Send& send, const Between& between) {
    u32 rank[kItems], total = 0;
#pragma unroll
    for (u32 k = 0; k < kItems; ++k) {
      const u32 votes = ballot(mask >> k & 1);
      rank[k] = total + bit_count(votes & ((1u << lane()) - 1));
      total += bit_count(votes);
    }
    u32 before = lane() == 0 && total ? fetch_add(&shared.listed, total) : 0;
    before = shuffle(before, 0, kWarpLanes);
    block_barrier();
    if (thread_in_block() == 0) {
      const u32 n = shared.listed;
      shared.base = n ? fetch_add(reinterpret_cast<u64*>(b.length), static_cast<u64>(n)) : 0;
      shared.listed = 0;
      between(n);
    }
    block_barrier();
#pragma unroll
    for (u32 k = 0; k < kItems; ++k)
      if (mask >> k & 1) send(k, shared.base + before + rank[k]);
  }

  WARPHASH_FN static void send_one(const Batch& b, u64 place, Key key, Value value, u32 element) {
    store_once(reinterpret_cast<Key*>(b.out_keys) + place, key);
    store_once(reinterpret_cast<Value*>(b.out_values) + place, value);
    store_once(reinterpret_cast<u32*>(b.elements) + place, element);
  }

  // Step 5, and the end. Whole blocks call it, behind a barrier that follows the last comparison.
  WARPHASH_FN static void flush(const Batch& b, Shared& shared) {
    for (u32 first = thread_in_block(); first < kEntries; first += kItems * threads_in_block()) {
      u32 mask = 0;
#pragma unroll
      for (u32 k = 0; k < kItems; ++k)
        mask |= static_cast<u32>(shared.owners[first + k * threads_in_block()] != kNowhere) << k;
      const auto send = [&](u32 k, u64 place) {
        const u32 at = first + k * threads_in_block();
        send_one(b, place, shared.keys[at], shared.values[at], shared.owners[at]);
        shared.owners[at] = kNowhere;
      };
      copy_out(b, shared, mask, send, [](u32) {});
    }
    block_barrier();  // before entries are taken again
  }

  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    Shared& shared = cleared();
    const u64 row_elements = kItems * threads_in_block();
    const u64 rows = (b.n + row_elements - 1) / row_elements;
    const u64 blocks = threads_in_grid() / threads_in_block(), block = thread_in_grid() / threads_in_block();
    const u64 begin = rows * block / blocks, stop = rows * (block + 1) / blocks;
    const auto row_at = [&](u64 at) {
      const u64 first = at * row_elements, end = first + row_elements < b.n ? first + row_elements : b.n;
      return load(b, first, end, [&](u32 j) { return first + j; });
    };
    Loaded next = {};
    if (begin < stop) next = row_at(begin);
    for (u64 at = begin; at < stop; ++at) {
      Row row(t, next);
      if (at + 1 < stop) next = row_at(at + 1);
      sum_equal_lanes(b, row);
      u32 found = 0;
      if (!enter(b, shared, row, static_cast<u32>(at - begin) + 1, found)) continue;
      const auto send = [&](u32 k, u64 place) { send_one(b, place, row.key[k], row.value[k], row.element(k)); };
      const auto judge = [&](u32 n) { shared.flushes = 8 * n > 7 * row_elements; };
      copy_out(b, shared, row.open, send, judge);
      if (shared.flushes) flush(b, shared);
    }
    flush(b, shared);
  }
};

// Of a row of elements from all over the batch, and of a row of neighbours in its middle, how many elements repeat the
// key of another: two words at `length`. One block.
template <class Key>
struct Repeats {
  using Rows = Aggregate<Key, u32>;
  using Table = Aggregation;
  using Batch = AggregateBatch;
  static constexpr bool kWalks = true;
  static constexpr u32 kThreads = kAggregatingThreads;

  template <class Index>
  WARPHASH_FN static void count(const Table& t, const Batch& b, u64* out, const Index& index) {
    typename Rows::Shared& shared = Rows::cleared();
    typename Rows::Row row(t, Rows::load(b, 0, b.n, index));
    u32 found = 0;
    Rows::enter(b, shared, row, 1, found);
    if (found) atomic_add(&shared.listed, found);
    block_barrier();
    if (thread_in_block() == 0) *out = shared.listed;
    block_barrier();  // before the entries are freed
  }

  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    u64* const out = reinterpret_cast<u64*>(b.length);
    const u64 middle = b.n / 2;
    // Multiples of the golden ratio are spread evenly, and at no regular distance.
    count(t, b, out, [&](u32 j) { return static_cast<u64>(j * 0x9E3779B9u) * b.n >> 32; });
    count(t, b, out + 1, [&](u32 j) { return middle + j; });
  }
};

struct Spread : Straight<Aggregation, SpreadBatch> {
  WARPHASH_FN static bool start(const Aggregation&, const SpreadBatch& b, u64 i, State&) {
    const u32 element = load_once(reinterpret_cast<const u32*>(b.elements) + i);
    reinterpret_cast<u8*>(b.out_flags)[element] = load_once(reinterpret_cast<const u8*>(b.flags) + i);
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                                                   \
  WARPHASH_ENTRY(aggregate44, warphash::Aggregate<warphash::u32, warphash::u32>) \
  WARPHASH_ENTRY(aggregate48, warphash::Aggregate<warphash::u32, warphash::u64>) \
  WARPHASH_ENTRY(aggregate84, warphash::Aggregate<warphash::u64, warphash::u32>) \
  WARPHASH_ENTRY(aggregate88, warphash::Aggregate<warphash::u64, warphash::u64>) \
  WARPHASH_ENTRY(repeats4, warphash::Repeats<warphash::u32>)                     \
  WARPHASH_ENTRY(repeats8, warphash::Repeats<warphash::u64>)                     \
  WARPHASH_ENTRY(spread, warphash::Spread)
