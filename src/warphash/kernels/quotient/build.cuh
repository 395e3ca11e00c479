// Adds the elements that a batch has brought to a range (quotient/bring.cuh) of a table without keys.
//
// Protocol. A barrier ends each step.
//   1. All lines of the range are vacant; nothing of the table is read. So lines need not be cleared before, if all
//      ranges are built, with elements or without.
//   2. Threads take elements, kAtOnce at a time, so that several loads and atomics of each are under way. An element
//      sets the bit of its hash in a map that the block shares. If the bit was clear, no other element with this key
//      has come before. The element takes the next slot of its home by a counter, and puts its key there with plain
//      stores: it compares with no key, and waits for no other thread. If no key repeats, there is no map.
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
  static constexpr u32 kAtOnce = 4;

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
    if (!b.unique)
      for (u32 k = id; k < Seen::kWords; k += threads) m.before.words[k] = 0;
    Base::set_heads(m, 0);  // there are no lists yet: the heads count the slots that are taken
    if (id == 0) m.listed = 0;
    block_barrier();
    for (u32 first = 0; first < elements; first += kAtOnce * threads) put_first_keys(first);
    block_barrier();
    if (m.listed > threads && !b.unique) settle_present(m.listed);
    Base::set_heads(m, Base::kNobody);
    block_barrier();
    Base::in_rounds(
        m.listed, [&](u32 k) { return Base::brought(list()[k]); },
        [&](u32 first, bool live, const Brought& item) {
          Base::insert_round(first, live, item, live ? list()[first + id] : 0);
        });
    Base::finish();
  }

 private:
  WARPHASH_FN u32* list() const { return pointer<u32>(b.left) + Base::start; }

  // Step 2. All threads of the block call it.
  WARPHASH_FN void put_first_keys(u32 first) {
    Brought items[kAtOnce];
    u32 slots[kAtOnce], live = 0, firsts = 0, left = 0;  // bits of elements
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const u32 element = first + j * threads + id;
      if (element >= elements) continue;
      items[j] = Base::brought(element);
      live |= 1u << j;
    }
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j)
      if (live >> j & 1) firsts |= static_cast<u32>(mark(S::hash_of(items[j]))) << j;
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) slots[j] = firsts >> j & 1 ? take_slot(S::hash_of(items[j])) : S::kSlots;
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const bool has_slot = slots[j] < S::kSlots, is_left = (live >> j & 1) && !has_slot;
      if (has_slot) {
        Base::put_at_home(items[j], slots[j]);
        Base::flag(first + j * threads + id, kChanged);
      }
      left |= static_cast<u32>(is_left) << j;
    }
    list_left(left, [&](u32 j) { return first + j * threads + id; });
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

  // Lists the elements of some bits. number(j) is that of bit j. Whole warps call it.
  template <class Number>
  WARPHASH_FN void list_left(u32 left, const Number& number) {
    u32 total = 0;
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) total += bit_count(ballot(left >> j & 1));
    if (total == 0) return;
    u32 place = shuffle(lane() == 0 ? Lines::add(&m.listed, total) : 0u, 0, kWarpLanes);
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const bool is_left = left >> j & 1;
      const u32 votes = ballot(is_left);
      if (is_left) list()[place + bit_count(votes & ((1u << lane()) - 1))] = number(j);
      place += bit_count(votes);
    }
  }

  // Sets the bit of a hash. False if it was set: another element may have the same key.
  WARPHASH_FN bool mark(Word hash) {
    if (b.unique) return true;
    const u32 at = multiply_high(D::mixed(hash), Seen::kBits), bit = 1u << at % 32;
    return !(Lines::set_bits(m.before.words + at / 32, bit) & bit);
  }
  // The next slot of the home of a key, or a number beyond its slots.
  WARPHASH_FN u32 take_slot(Word hash) {
    return Lines::add(m.heads + (D::home_of(t, hash).bucket - Base::first_bucket), 1u);
  }
};

}  // namespace warphash
