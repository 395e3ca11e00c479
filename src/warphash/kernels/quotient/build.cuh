// Adds the elements that a batch has brought to a range (quotient/bring.cuh) of a table without keys.
//
// Protocol. A barrier ends each step.
//   1. All lines of the range are vacant; nothing of the table is read. So lines need not be cleared before, if all
//      ranges are built, with elements or without.
//   2. Threads take elements, kAtOnce at a time, so that several loads and atomics of each are under way. An element
//      sets the bit of its hash in a map that the block shares. If the bit was clear, no other element with this key
//      has come before. The element takes the next slot of its home by a counter, and puts its key there with plain
//      stores: it compares with no key, and waits for no other thread. If no key repeats, there is no map. The counters
//      are the heads of the lists of rounds, which a count leaves open (quotient/range.cuh).
//   3. Elements whose bit was set, and those whose home was full, have listed their numbers in step 2. If there are more
//      than a round has, those whose keys are there by now combine their values, and leave the list. Again the loads of
//      several elements of a thread are under way.
//   4. The listed elements are inserted in rounds, as in any batch (quotient/range.cuh).
//
// Why. With ten slots a bucket and 0.72 of them to be filled, one element of thirty finds its bit set by another key,
// and one of thirty a full home. So mostly one round follows instead of fifteen. (By Poisson's law: 3,700 elements of a
// range set bits of 61,440, and 7.2 keys come to a home.) Homes fill up before a guest comes to any, so that a find
// reads fewer lines. The map is as large as blocks leave room for: five on a multiprocessor, or four where buckets have
// more slots or words are wider (quotient/gpu/entries.cuh).
//
// The list has as many places as the range has elements, so it never overflows.
//
// Memory order: relaxed, as in quotient/range.cuh.
#pragma once
#include "quotient/range.cuh"

namespace warphash {

// What a block keeps in memory in step 2.
template <class S>
struct SeenHashes {
  static constexpr u32 kWords = S::kSlots > 10 ? 2816 : 1920, kBits = 32 * kWords;
  u32 words[kWords];
};

template <class D, class Lines>
struct BuildRange : InRange<D, Lines, SeenHashes<typename D::S>> {
  using S = typename D::S;
  using Seen = SeenHashes<S>;
  using Base = InRange<D, Lines, Seen>;
  using Word = typename S::Word;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::id, Base::threads, Base::elements;
  using Base::Base;
  static constexpr u32 kAtOnce = 4, kThreads = Base::kThreads;

  // The listed ranges or, without a list, all.
  WARPHASH_FN static u64 ranges_of(const QuotientTable& t, const QuotientBatch& b) {
    return Lines::kIsForCrowds || b.touched ? Base::ranges_of(t, b) : t.ranges;
  }
  WARPHASH_FN static u32 range_at(const QuotientBatch& b, u64 number) {
    return Lines::kIsForCrowds || b.touched ? Base::range_at(b, number) : static_cast<u32>(number);
  }

  // The memory is prepared.
  WARPHASH_FN void run() {
    WARPHASH_ASSERT(!b.erases);
    Base::lines = Lines::open_vacant(m.range, line_at(t, Base::first_bucket), Base::size, id, threads);
    if (!b.unique) clear_map();
    if (id == 0) m.listed = 0;
    block_barrier();
    put_first_keys();
    block_barrier();
    settle_many();
    Base::in_rounds(
        m.listed, [&](u32 k) { return Base::brought(list()[k]); },
        [&](u32 first, bool live, const Brought& item) {
          Base::insert_round(first, live, item, live ? list()[first + id] : 0);
        });
    Base::finish();
  }

 protected:
  // Step 2. All threads of the block call it.
  WARPHASH_FN void put_first_keys() {
    u32 first = 0;
    for (; first + kAtOnce * kThreads <= elements; first += kAtOnce * kThreads) put_first_keys<true>(first);
    if (first < elements) put_first_keys<false>(first);
  }
  // Step 3, behind a barrier. All threads of the block call it.
  WARPHASH_FN void settle_many() {
    if (m.listed > threads && !b.unique) settle_present(m.listed);
  }
  WARPHASH_FN void clear_map() {
    for (u32 k = id; k < Seen::kWords; k += threads) m.before.words[k] = 0;
  }
  // Of a key that no element is to take for a new one.
  WARPHASH_FN void set_bit(Word hash) {
    const u32 at = bit_of(hash);
    Lines::set_bits(m.before.words + at / 32, 1u << at % 32);
  }
  // The listed elements.
  WARPHASH_FN u32* list() const { return pointer<u32>(b.left) + Base::start; }

 private:
  // Step 2, for the elements from `first` on. All threads of the block call it. kAll: there are as many as they take.
  // A branch around an element would make a thread wait for its load or atomic before the next one begins. So there is
  // none: a thread that has no element loads the last one, and sets no bit and takes no slot for it.
  template <bool kAll>
  WARPHASH_FN void put_first_keys(u32 first) {
    Brought items[kAtOnce];
    u32 is_first[kAtOnce], slots[kAtOnce];
    u32 all = 0, placed = 0;  // bits of elements
    const auto number = [&](u32 j) { return first + j * kThreads + id; };
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      is_first[j] = kAll || number(j) < elements;
      items[j] = Base::brought(is_first[j] ? number(j) : elements - 1);
      all |= is_first[j] << j;
    }
    if (!b.unique) {
      u32 bits[kAtOnce], old[kAtOnce];
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j) {
        const u32 at = bit_of(S::hash_of(items[j]));
        bits[j] = is_first[j] << at % 32;
        old[j] = Lines::set_bits(m.before.words + at / 32, bits[j]);
      }
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j) is_first[j] = (bits[j] & ~old[j]) != 0;
    }
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) slots[j] = Lines::add(m.heads + home_of(S::hash_of(items[j])), is_first[j]);
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      if (is_first[j] && slots[j] < S::kSlots) {
        Base::put_at_home(items[j], slots[j]);
        placed |= 1u << j;
      }
    }
    Base::changed += bit_count(placed);
    if (b.out_flags)
      for (u32 rest = placed; rest; rest &= rest - 1) Base::flag(number(first_bit(rest)), kChanged);
    list_left(all & ~placed, number);
  }

  // Step 3. All threads of the block call it, between two barriers.
  WARPHASH_FN void settle_present(u32 listed) {
    block_barrier();  // all have read the length
    if (id == 0) m.listed = 0;
    for (u32 first = 0; first < listed; first += kAtOnce * threads) {
      u32 numbers[kAtOnce], left = 0;
      Brought items[kAtOnce];
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j)
        if (first + j * threads + id < listed) numbers[j] = list()[first + j * threads + id];
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j)
        if (first + j * threads + id < listed) items[j] = Base::brought(numbers[j]);
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j) {
        if (first + j * threads + id >= listed) continue;
        const auto spot = Base::look(D::home_of(t, S::hash_of(items[j])));
        if (spot.found()) {
          Base::combine_at(spot, items[j]);
          Base::flag(numbers[j], kPresent);
        } else {
          left |= 1u << j;
        }
      }
      block_barrier();  // all have read this part of the list, and may write there
      list_left(left, [&](u32 j) { return numbers[j]; });
    }
    block_barrier();
  }

  // Lists the elements of some bits. number(j) is that of bit j. Whole warps call it, and add to the length once.
  template <class Number>
  WARPHASH_FN void list_left(u32 left, const Number& number) {
    static_assert(kAtOnce < 8);
    const u32 n = bit_count(left), ones = ballot(n & 1), twos = ballot(n & 2), fours = ballot(n & 4);
    if (!(ones | twos | fours)) return;
    const auto sum = [&](u32 lanes) {
      return bit_count(ones & lanes) + 2 * bit_count(twos & lanes) + 4 * bit_count(fours & lanes);
    };
    u32 place = lane() == 0 ? Lines::add(&m.listed, sum(~0u)) : 0;
    place = shuffle(place, 0, kWarpLanes) + sum((1u << lane()) - 1);
    for (; left; left &= left - 1) list()[place++] = number(first_bit(left));
  }

  // The bit of a hash in the map. The hashes of a range have the same high bits. Their low bits are mixed well already
  // (quotient/permutation.cuh), so a product with an odd number, here 2^32 by the golden ratio, spreads them.
  WARPHASH_FN static u32 bit_of(Word hash) {
    u32 x = static_cast<u32>(hash);
    if constexpr (sizeof(Word) == 8) x ^= static_cast<u32>(hash >> 32);
    return multiply_high(x * 0x9e3779b1u, Seen::kBits);
  }
  // The home of a key, counted from the first bucket of the range.
  WARPHASH_FN u32 home_of(Word hash) const { return D::home_of(t, hash).bucket - Base::first_bucket; }
};

}  // namespace warphash
