// The find of a CPU in subtables of keys of 4 or 8 bytes, and values of at most 8: a pass over the batch, which looks at
// first buckets, and the schedule of core/cpu/schedule.cuh for the elements that go on.
//
// Three blocks of elements are under way at a time:
//   1. the first buckets of one block are computed and prefetched,
//   2. those of the block before are looked at, and the value of each key that is there is prefetched,
//   3. the values of the block before that one are copied out.
// A look writes whether the key is there. The number of an element that has to go on is written to a list, whose length
// grows by one or by none: there is no branch. The value of an absent key is the default one.
//
// Why. As of buckets/cpu/find.cuh: a branch for each element that the processor cannot predict throws away what it had
// begun for the elements behind.
#pragma once
#include "core/cpu/schedule.cuh"
#include "subtables/bulk.cuh"

namespace warphash {

// The find of listed elements whose keys are reserved, or not in their first buckets. Key i is that of the element whose
// number is listed there.
template <class D>
struct FindPairOn : FindPair<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  struct State : FindPair<D>::State {
    u32 element;
  };
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    s.element = element_of(b, i);
    FindPair<D>::start(t, b, i, s);
    return s.probe.named.reserved || !FindPair<D>::step(t, b, s, BucketView<S>::full());
  }
  WARPHASH_FN static void finish(const Table& t, const Batch& b, u64, State& s, bool live, Tally& tally) {
    FindPair<D>::finish(t, b, s.element, s, live, tally);
  }
};

// As Route::of.
template <class Digest>
WARPHASH_FN u32 first_subtable(const SubtableTable& t, Digest hashed) {
  const u32 draw = static_cast<u32>(mix(static_cast<u64>(hashed) ^ t.routing_salt) >> 32);
  u32 subtable = 0;
  for (u32 j = 0; j + 1 < t.subtables; ++j) subtable += draw >= t.route_ends[j];
  return subtable;
}

template <class D>
struct FindPairInPasses : FindPair<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename D::Value::Word;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64, kListed = 16 * kBlock;

  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    if (S::kValueBytes != 0 && batch.out_values)
      Walk<true>(table, batch).run(begin, end);
    else
      Walk<false>(table, batch).run(begin, end);
  }

 private:
  struct Block {
    u64 first;
    u32 n = 0;
    u32 buckets[kBlock];
    Word keys[kBlock];  // copies, so each is the same in all steps, whatever others write to the batch meanwhile
    const u8* values[kBlock];
  };

  template <bool kWithValues>
  struct Walk {
    const Table t;  // copies: no store to an answer changes them
    const Batch b;
    const bool far;           // the table is
    const bool ends_if_open;  // the walk of an absent key, at an open first bucket
    u32 list[kListed + kBlock];
    Word keys[kListed + kBlock];  // of the listed elements
    u32 listed = 0;

    Walk(const Table& table, const Batch& batch)
        : t(table), b(batch), far(bytes_of(table) > kNearBytes), ends_if_open(table.early_exit && !batch.displaced) {}

    static u64 bytes_of(const Table& t) {
      u64 buckets = 0;
      for (u32 j = 0; j < t.subtables; ++j) buckets += t.sizes[j];
      return buckets * S::kBucketBytes;
    }

    WARPHASH_FN void run(u64 begin, u64 end) {
      Block blocks[3];
      Block *found = &blocks[0], *seen = &blocks[1], *next = &blocks[2];
      open(begin, end, *next);
      for (u32 k = 0; k < next->n; ++k) prefetch_bucket<S>(t, next->buckets[k], far);
      while (next->n) {
        Block* const done = found;
        found = seen, seen = next, next = done;
        open(seen->first + seen->n, end, *next);
        copy_values(*found);
        if (listed >= kListed) go_on();  // behind copy_values, which writes default values
        look_at(*seen, *next);
      }
      copy_values(*seen);
      go_on();
    }

    // The block that begins with an element. A block that is not full names a bucket for each element that it lacks.
    // (Out of line: it is a loop of its own, and two loops around it would be two copies for the compiler.)
    [[gnu::noinline]] void open(u64 first, u64 end, Block& __restrict block) const {
      block.first = first;
      block.n = end - first < kBlock ? static_cast<u32>(end - first) : kBlock;
      for (u32 k = 0; k < block.n; ++k) {
        block.keys[k] = key_at<S>(b, static_cast<u32>(first) + k);
        const auto hashed = digest(t, block.keys[k]);
        block.buckets[k] = bucket_in(t, first_subtable(t, hashed), hashed);
      }
      for (u32 k = block.n; k < kBlock; ++k) block.buckets[k] = 0;
    }

    WARPHASH_FN void look_at(Block& seen, const Block& next) {
      u32 length = listed;
      for (u32 k = 0; k < seen.n; ++k) {
        prefetch_bucket<S>(t, next.buckets[k], far);
        const u32 element = static_cast<u32>(seen.first) + k, bucket = seen.buckets[k];
        const Word key = seen.keys[k];
        const typename S::Item* const line = S::at(t, bucket);
        const u32 hits = survey<S, false>(line, key).hits;
        const bool reserved = S::is_reserved(key), found = (hits != 0) & !reserved;
        const bool ends = ends_if_open & (load_relaxed(&line[S::kSlots - 1].key) == S::kEmpty);
        if constexpr (kWithValues) {
          const u32 slot = first_bit(hits | 1u << (S::kSlots - 1));  // the last one if the key is in none
          const u64 value = reinterpret_cast<u64>(S::value_at(t, bucket, slot)), mask = 0ull - found;
          seen.values[k] = pointer<const u8>((value & mask) | (reinterpret_cast<u64>(&b.default_value) & ~mask));
          prefetch_bytes<1>(seen.values[k], far);
        }
        set_flag(b, element, found);
        list[length] = element;
        keys[length] = key;
        length += reserved | !(found | ends);
      }
      listed = length;
    }

    WARPHASH_FN void copy_values(const Block& found) const {
      if constexpr (kWithValues)
        for (u32 k = 0; k < found.n; ++k)
          store_once(pointer<Value>(b.out_values) + found.first + k,
                     load_slot<true>(reinterpret_cast<const Value*>(found.values[k])));
    }

    // Finishes the listed elements.
    [[gnu::noinline]] void go_on() {
      Batch rest = b;
      rest.indices = reinterpret_cast<u64>(list);
      rest.keys = reinterpret_cast<u64>(keys);
      for_each_stepping<FindPairOn<D>>(t, rest, 0, listed);
      listed = 0;
    }
  };
};

template <class D>
  requires(!D::S::kWide && D::S::kValueBytes != kRow)
struct TaskOnCpu<FindPair<D>> {
  using type = FindPairInPasses<D>;
};

}  // namespace warphash
