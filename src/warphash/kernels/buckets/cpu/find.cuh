// The find of a CPU: one pass over the batch, which looks at first buckets, and passes over the elements that go on.
//
//   1. The first buckets of a block of elements are computed together, by SIMD. Their lines are prefetched one by one,
//      while the block before is looked at.
//   2. A look writes the answer of the element: its value and presence, or that it is absent. If the element has to go
//      on, it stays in a list, whose length grows by one or by none: there is no branch.
//   3. A pass over the list takes each element one bucket further, and keeps those that go on. It begins when the list
//      is long enough to have a block of lines under way.
//   4. The answers of a large batch are held until no element of the list is left (core/cpu/held_answers.cuh).
//
// Why. Whether a key is in the bucket that was seen, and whether an absent key may be in another one, are branches that
// the processor cannot predict. A wrong guess throws away what it had begun for the elements behind, lines included. The
// schedule of core/cpu/schedule.cuh, which all other tasks have, takes such a branch for each element.
// (docs/performance/cpu.md)
#pragma once
#include <cstring>

#include "buckets/abi.cuh"
#include "core/bulk.cuh"
#include "core/cpu/held_answers.cuh"
#include "core/cpu/schedule.cuh"

namespace warphash {

// Copies of some keys. What comes after sees one value of each, whatever others write to the batch meanwhile.
template <class S, class Batch, u32 kMost>
WARPHASH_FN void load_keys(const Batch& b, u64 first, u32 n, typename S::Word (&keys)[kMost]) {
  std::memcpy(keys, pointer<const typename S::Word>(b.keys) + first, n * sizeof(typename S::Word));
}

// The first buckets of some keys. (A loop of its own is one that the compiler vectorizes.)
template <u32 kMost, class KeyAt>
WARPHASH_FN void find_buckets(const BucketTable& t, u32 n, u32 (&buckets)[kMost], const KeyAt& key_at) {
  for (u32 k = 0; k < n; ++k) buckets[k] = bucket_with(t, key_at(k), t.multiplier[0], t.addend[0]);
}

template <class D>
struct FindInPasses : Find<D> {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  using Word = typename S::Word;
  static constexpr bool kWalks = true;
  static constexpr u32 kBlock = 64, kListed = 16 * kBlock, kKeysAhead = 4 * kBlock;

  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    if constexpr (S::kHasValue)
      if (batch.out_values) return Walk<true>(table, batch).run(begin, end);
    Walk<false>(table, batch).run(begin, end);
  }

 private:
  struct Block {
    u64 first;
    u32 n;
    u32 buckets[kBlock];
    Word keys[kBlock];
  };

  // An element on its way: the walk has come to a bucket where the key is not.
  struct GoesOn {
    Probe<S> probe;
    u32 element;
  };

  template <bool kWithValues>
  struct Walk {
    const Table t;  // copies: no store to an answer changes them
    const Batch b;
    const bool far;  // the table is
    const i32 region;
    const bool ends_at_first;     // an absent key, if its first bucket is open
    u32 fresh[kListed + kBlock];  // elements that go on from their first buckets
    Word fresh_keys[kListed + kBlock];
    u32 count = 0;
    GoesOn list[2 * kListed + kBlock];
    u32 listed = 0;
    HeldAnswers<Word, kWithValues> answers;

    Walk(const Table& table, const Batch& batch)
        : t(table),
          b(batch),
          far(table.buckets * S::kBucketBytes > kNearBytes),
          region(D::region(table)),
          ends_at_first(ends_if_open(Probe<S>::start(table, 0))),
          answers(batch, far) {}

    WARPHASH_FN void run(u64 begin, u64 end) {
      Block blocks[2];
      Block *seen = &blocks[0], *next = &blocks[1];
      open(begin, end, *next);
      answers.begin(begin);
      for (u32 k = 0; k < next->n; ++k) prefetch_bucket<S>(t, next->buckets[k], far);
      while (next->n) {
        Block* const done = seen;
        seen = next, next = done;
        open(seen->first + seen->n, end, *next);
        look_at(*seen, *next);
        const bool ends = !next->n || answers.is_full(next->first + kBlock);
        if (count >= kListed || ends) enlist();
        while (listed >= kListed || (listed && ends)) pass();
        if (ends) answers.send(next->first);
      }
    }

    // The block that begins with an element. A block that is not full names bucket 0 for the elements that it lacks.
    WARPHASH_FN void open(u64 first, u64 end, Block& block) const {
      block.first = first;
      block.n = end - first < kBlock ? static_cast<u32>(end - first) : kBlock;
      for (u32 k = 0; k < kBlock; k += kLineBytes / sizeof(Word))
        prefetch(pointer<const Word>(b.keys) + first + kKeysAhead + k);
      load_keys<S>(b, first, block.n, block.keys);
      find_buckets(t, block.n, block.buckets, [&block](u32 k) { return block.keys[k]; });
      for (u32 k = block.n; k < kBlock; ++k) block.buckets[k] = 0;
    }

    WARPHASH_FN void look_at(const Block& seen, const Block& next) {
      u32 length = count;
      for (u32 k = 0; k < seen.n; ++k) {
        prefetch_bucket<S>(t, next.buckets[k], far);
        const u32 element = static_cast<u32>(seen.first) + k;
        const Word key = seen.keys[k];
        fresh[length] = element;
        fresh_keys[length] = key;
        if (S::is_reserved(key)) [[unlikely]]
          find_reserved(element, key);
        else
          length += look_up(seen.buckets[k], key, element, ends_at_first);
      }
      count = length;
    }

    [[gnu::noinline]] void enlist() {
      for (u32 k = 0; k < count; ++k) list[listed++] = {Probe<S>::start(t, fresh_keys[k]), fresh[k]};
      count = 0;
    }

    // Takes all listed elements one bucket further.
    [[gnu::noinline]] void pass() {
      const u32 n = listed;
      u32 length = 0;
      for (u32 k = 0; k < n + kBlock; ++k) {
        if (k < n) {
          GoesOn& e = list[k];
          if (!D::advance(t, e.probe, BucketView<S>::full())) e.element = kNowhere;
          prefetch_bucket<S>(t, e.probe.bucket, far);
        }
        if (k < kBlock) continue;
        const GoesOn e = list[k - kBlock];
        if (e.element == kNowhere) continue;
        list[length] = e;
        length += look_up(e.probe.bucket, e.probe.named.key, e.element, ends_if_open(e.probe));
      }
      listed = length;
    }

    // Answers an element by the bucket that it has come to; whether it goes on. `ends`: not from an open bucket.
    // Nobody writes meanwhile, so the masks of one look are right for all of it. There is no branch: a key that is in no
    // slot gets the payload of the last one, masked out.
    WARPHASH_FN bool look_up(u32 bucket, Word key, u32 element, bool ends) const {
      const typename S::Item* const at = S::at(t, bucket);
      const u32 hits = survey<S, false>(at, key).hits;
      const bool found = hits != 0;
      if constexpr (kWithValues) {
        const Word mask = static_cast<Word>(0) - static_cast<Word>(found);
        const Word payload = load_relaxed(&at[first_bit(hits | 1u << (S::kSlots - 1))].value);
        answers.put_value(element, (payload & mask) | (static_cast<Word>(b.default_value) & ~mask));
      }
      answers.put_flag(element, found);
      const bool open = region > 0 && load_relaxed(&at[region - 1].key) == S::kEmpty;
      return !(found | (open & ends));
    }

    // Whether the walk of an absent key ends at the bucket that it has come to, if that is open.
    WARPHASH_FN bool ends_if_open(Probe<S> probe) const {
      BucketView<S> open = BucketView<S>::full();
      open.open = true;
      return !D::advance(t, probe, open);
    }

    // A reserved key is in a bucket of another kind.
    [[gnu::noinline]] void find_reserved(u32 element, Word key) const {
      Batch one = b;
      one.keys = reinterpret_cast<u64>(&key);
      one.out_values = b.out_values ? answers.value_at(element) : 0;
      one.out_flags = answers.flag_at(element);
      for_each_stepping<Find<D>>(t, one, 0, 1);
    }
  };
};

template <class D>
  requires(!D::S::kLinked && !D::S::kApart)
struct TaskOnCpu<Find<D>> {
  using type = FindInPasses<D>;
};

}  // namespace warphash
