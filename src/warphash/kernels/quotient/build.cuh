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
//   3. Elements whose bit was set, and those whose home was full, have listed their numbers in step 2. Pairs of 16 bytes
//      alone: an element whose bit was clear is new. It takes the next slot of its second bucket by the counter there, as
//      a guest. If that bucket is full, too, it takes the slot of a key of one of its buckets that can become a guest.
//   4. If there are more listed elements than a round has, those whose keys are there by now combine their values, and
//      leave the list. Again the loads of several elements of a thread are under way.
//   5. Pairs of 16 bytes alone, if no more elements are left than a round has: first all of them look for their keys.
//      Of the absent ones, those that set another bit are new, too. Then these go home, where there is room. Then the
//      others go where those of step 3 go, and up to two keys move for one of them.
//   6. The listed elements are inserted in rounds, as in any batch (quotient/range.cuh).
//
// Which thread moves a key. In steps 3 and 5, a bit of each slot says whether a thread has asked its key to move. The
// thread that has set the bit owns the slot from then on: no other reads or writes it. Only keys that came home before the
// last barrier move. A key that cannot move now cannot move later in the step, since slots are taken and not given back.
// So each key is asked once, and no thread waits.
//
// Why. With ten slots a bucket and 0.72 of them to be filled, one element of thirty finds its bit set by another key,
// and one of thirty a full home. So mostly one round follows instead of fifteen. (By Poisson's law: 3,700 elements of a
// range set bits of 61,440, and 7.2 keys come to a home.) Homes fill up before a guest comes to any, so that a find
// reads fewer lines. The map is as large as blocks leave room for: five on a multiprocessor, or four where buckets have
// more slots or words are wider (quotient/gpu/entries.cuh).
//
// Why pairs of 16 bytes have steps 3 and 5. Of four slots, one element of ten finds its home full, and one of thirty its
// second bucket, too; at 0.87 of the slots one of seven, and one of twelve. A round has a dozen barriers for them, and
// then one warp for those that claimed one bucket in vain. By a simulation, step 3 leaves one element of 8,600 at 0.72 of
// the slots and one of 170 at 0.87, and step 5 none and one of 7,200.
//
// The list has as many places as the range has elements, so it never overflows. New elements whose home was full are
// entered from its end on.
//
// Memory order: relaxed, as in quotient/range.cuh.
#pragma once
#include "quotient/range.cuh"

namespace warphash {

// Whether a build places guests by counters, too.
template <class S>
constexpr bool kPlacesGuests = sizeof(typename S::Brought) == 16;

// What a block keeps in memory ahead of its first round.
template <class S, bool kGuests = kPlacesGuests<S>>
struct SeenHashes {
  static constexpr u32 kWords = S::kSlots > 10 ? 2816 : 1920, kBits = 32 * kWords;
  u32 words[kWords];  // of step 2
};
template <class S>
struct SeenHashes<S, true> {
  static constexpr u32 kWords = SeenHashes<S, false>::kWords, kBits = 32 * kWords;
  static constexpr u32 kAgainBits = 4096, kTriedSlots = 8, kTried = kWords + kAgainBits / 32;
  static_assert(S::kSlots <= kTriedSlots);
  // Of step 2; then a map of step 5; then a bit for each slot whose key was asked to move.
  u32 words[kTried + kMostRangeBuckets * kTriedSlots / 32];
  u32 fresh;  // new elements whose home was full
  WARPHASH_FN u32* again() { return words + kWords; }
  WARPHASH_FN u32* tried() { return words + kTried; }
};

// kGuests: with steps 3 and 5.
template <class D, class Lines, bool kGuests = kPlacesGuests<typename D::S>>
struct BuildRange : InRange<D, Lines, SeenHashes<typename D::S, kGuests>> {
  using S = typename D::S;
  using Seen = SeenHashes<S, kGuests>;
  using Base = InRange<D, Lines, Seen>;
  using Word = typename S::Word;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::id, Base::threads, Base::elements;
  using Base::Base;
  static constexpr u32 kAtOnce = 4, kFew = 2, kThreads = Base::kThreads;
  static constexpr u32 kIsNew = kGuests ? 1u << 31 : 0;  // with the number of a listed element: no other has its key

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
    clear_seen(b.unique ? Seen::kWords : 0);
    if (id == 0) m.listed = m.left = 0;
    block_barrier();
    put_first_keys();
    block_barrier();
    if constexpr (kGuests) place_guests();
    settle_many();
    u32 left = m.listed;
    if constexpr (kGuests)
      if (left && left <= threads) left = place_rest(left);
    Base::in_rounds(
        left, [&](u32 k) { return Base::brought(number_in(list()[k])); },
        [&](u32 first, bool live, const Brought& item) {
          Base::insert_round(first, live, item, live ? number_in(list()[first + id]) : 0);
        });
    Base::finish();
  }

 protected:
  // The maps from a word on: 0, or the first one behind that of step 2.
  WARPHASH_FN void clear_seen(u32 first) {
    for (u32 k = id + first; k < sizeof(m.before.words) / 4; k += threads) m.before.words[k] = 0;
    if constexpr (kGuests)
      if (id == 0) m.before.fresh = 0;
  }
  // Step 2. All threads of the block call it.
  WARPHASH_FN void put_first_keys() {
    u32 first = 0;
    for (; first + kAtOnce * kThreads <= elements; first += kAtOnce * kThreads) put_first_keys<kAtOnce, true>(first);
    if (kGuests && first + kFew * kThreads >= elements) {
      if (first < elements) put_first_keys<kFew, false>(first);
    } else {
      if (first < elements) put_first_keys<kAtOnce, false>(first);
    }
  }
  // Step 4, behind a barrier. All threads of the block call it.
  WARPHASH_FN void settle_many() {
    if (m.listed > threads && !b.unique) settle_present(m.listed);
  }
  // Of a key that no element is to take for a new one.
  WARPHASH_FN void set_bit(Word hash) {
    const u32 at = bit_of(hash);
    Lines::set_bits(m.before.words + at / 32, 1u << at % 32);
  }
  // The listed elements.
  WARPHASH_FN u32* list() const { return pointer<u32>(b.left) + Base::start; }
  WARPHASH_FN static u32 number_in(u32 listed) { return listed & ~kIsNew; }

 private:
  // Step 2, for the elements from `first` on, kMine of each thread. All threads of the block call it. kAll: there are as
  // many as they take.
  // A branch around an element would make a thread wait for its load or atomic before the next one begins. So there is
  // none: a thread that has no element loads the last one, and sets no bit and takes no slot for it.
  template <u32 kMine, bool kAll>
  WARPHASH_FN void put_first_keys(u32 first) {
    Brought items[kMine];
    u32 is_first[kMine], slots[kMine];
    u32 all = 0, fresh = 0, placed = 0;  // bits of elements
    const auto number = [&](u32 j) { return first + j * kThreads + id; };
#pragma unroll
    for (u32 j = 0; j < kMine; ++j) {
      is_first[j] = kAll || number(j) < elements;
      items[j] = Base::brought(is_first[j] ? number(j) : elements - 1);
      all |= is_first[j] << j;
    }
    if (!b.unique) {
      u32 bits[kMine], old[kMine];
#pragma unroll
      for (u32 j = 0; j < kMine; ++j) {
        const u32 at = bit_of(S::hash_of(items[j]));
        bits[j] = is_first[j] << at % 32;
        old[j] = Lines::set_bits(m.before.words + at / 32, bits[j]);
      }
#pragma unroll
      for (u32 j = 0; j < kMine; ++j) is_first[j] = (bits[j] & ~old[j]) != 0;
    }
#pragma unroll
    for (u32 j = 0; j < kMine; ++j) {
      slots[j] = Lines::add(m.heads + home_of(S::hash_of(items[j])), is_first[j]);
      fresh |= is_first[j] << j;
    }
#pragma unroll
    for (u32 j = 0; j < kMine; ++j) {
      if (is_first[j] && slots[j] < S::kSlots) {
        Base::put_at_home(items[j], slots[j]);
        placed |= 1u << j;
      }
    }
    Base::changed += bit_count(placed);
    if (b.out_flags)
      for (u32 rest = placed; rest; rest &= rest - 1) Base::flag(number(first_bit(rest)), kChanged);
    if constexpr (kGuests) {
      list_left(all & ~fresh, number);
      u32* const end = list() + (elements - 1);
      enter_left(&m.before.fresh, fresh & ~placed, [&](u32 place, u32 j) { *(end - place) = number(j); });
    } else {
      list_left(all & ~placed, number);
    }
  }

  // ---- step 3
  // All threads of the block call it, between two barriers.
  WARPHASH_FN void place_guests() {
    constexpr u32 kPairs = 2;
    const u32 fresh = m.before.fresh;
    const u32* const entries = list() + (elements - fresh);
    for (u32 first = 0; first < fresh; first += kPairs * threads) {
      u32 numbers[kPairs], left = 0;
      Brought items[kPairs];
      const auto has = [&](u32 j) { return first + j * threads + id < fresh; };
#pragma unroll
      for (u32 j = 0; j < kPairs; ++j) numbers[j] = has(j) ? entries[first + j * threads + id] : 0;
#pragma unroll
      for (u32 j = 0; j < kPairs; ++j)
        if (has(j)) items[j] = Base::brought(numbers[j]);
#pragma unroll
      for (u32 j = 0; j < kPairs; ++j) {
        if (!has(j)) continue;
        if (put_guest(items[j])) {
          ++Base::changed;
          Base::flag(numbers[j], kChanged);
        } else {
          left |= 1u << j;
          is_first_again(S::hash_of(items[j]));  // equal keys have to wait for it
        }
      }
      block_barrier();  // all have read these entries. Those that are left are entered before the next ones.
      list_left(left, [&](u32 j) { return kIsNew | (j ? numbers[1] : numbers[0]); });
    }
    block_barrier();
  }

  // Puts a new key whose home is full to its second bucket, or to a slot whose key can move. False if there is none.
  WARPHASH_FN bool put_guest(const Brought& item) {
    const auto home = D::home_of(t, S::hash_of(item));
    const u32 second = D::second_of(t, Base::first_bucket, home);
    const u32 slot = Lines::add(m.heads + (second - Base::first_bucket), 1u);
    if (slot >= S::kSlots) return put_for_another<0>(home, second, S::value_of(item));
    put_new(second, slot, home, S::value_of(item));
    return true;
  }

  // To a vacant slot that this thread has.
  WARPHASH_FN void put_new(u32 bucket, u32 slot, const Home<Word>& home, typename S::Value value) {
    u32* const w = Base::words(bucket);
    const bool guest = bucket != home.bucket;
    S::put_beside(w, slot, home.remainder, guest);
    if constexpr (S::kHasValue) *S::value(w, slot) = value;
    if (guest) fetch_or(Base::words(home.bucket), D::filter_bit(home.remainder));
  }

  // Both buckets of a new key are full: a key of one of them moves for it, to a bucket that is kMoves moves away.
  template <u32 kMoves>
  WARPHASH_FN bool put_for_another(const Home<Word>& home, u32 second, typename S::Value value) {
#pragma unroll 1
    for (u32 k = 0; k < 2 * S::kSlots; ++k) {
      const u32 bucket = k < S::kSlots ? home.bucket : second, slot = k < S::kSlots ? k : k - S::kSlots;
      if (!empty<kMoves>(bucket, slot)) continue;
      put_new(bucket, slot, home, value);
      return true;
    }
    return false;
  }

  // Moves the key of a slot to its second bucket, if no other thread has tried to. A guest stays: its home is full.
  template <u32 kMoves>
  WARPHASH_FN bool empty(u32 bucket, u32 slot) {
    const u32 bit = (bucket - Base::first_bucket) * Seen::kTriedSlots + slot;
    if (Lines::set_bits(m.before.tried() + bit / 32, 1u << bit % 32) >> bit % 32 & 1) return false;
    u32* const w = Base::words(bucket);
    if (!S::is_occupied(w, slot) || S::is_guest(w, slot)) return false;
    const Home<Word> home = {bucket, S::remainder(w, slot)};
    const u32 to = D::second_of(t, Base::first_bucket, home);
    u32* const taken = m.heads + (to - Base::first_bucket);
    u32 to_slot = Lines::add(taken, 1u);
    if constexpr (kMoves > 0) {
      if (to_slot >= S::kSlots)
        for (to_slot = 0; to_slot < S::kSlots; ++to_slot)
          if (empty<kMoves - 1>(to, to_slot)) break;
    }
    if (to_slot >= S::kSlots) return false;
    typename S::Value value = 0;
    if constexpr (S::kHasValue) value = *S::value(w, slot);
    put_new(to, to_slot, home, value);
    S::vacate(w, slot);
    return true;
  }

  // ---- step 5
  // All threads of the block call it, between two barriers. One warp does it, if it has a lane for each element. Returns
  // how many elements are left.
  WARPHASH_FN u32 place_rest(u32 listed) {
    const bool by_warp = listed <= kWarpLanes;
    if (by_warp) {
      if (id < kWarpLanes) place_rest(listed, kWarpLanes, [] { Lines::order_warp(); });
    } else {
      place_rest(listed, threads, [] { block_barrier(); });
    }
    block_barrier();
    return m.left;
  }
  // By so many threads, which `barrier` waits for.
  template <class Barrier>
  WARPHASH_FN void place_rest(u32 listed, u32 by, const Barrier& barrier) {
    const u32 entry = id < listed ? list()[id] : 0, number = number_in(entry);
    bool left = id < listed, is_new = (entry & kIsNew) != 0, placed = false;
    Brought item = {};
    if (left) item = Base::brought(number);
    const auto home = D::home_of(t, S::hash_of(item));
    const bool looks = left && !is_new;
    if (looks) {
      const auto spot = Base::look(home);
      if (spot.found()) {
        Base::combine_at(spot, item);
        Base::flag(number, kPresent);
        left = false;
      } else {
        is_new = is_first_again(S::hash_of(item));
      }
    }
    barrier();  // no key comes to the range before all have looked
    for (u32 k = Seen::kTried + id; k < sizeof(m.before.words) / 4; k += by) m.before.words[k] = 0;
    if (looks && is_new) {
      const u32 slot = Lines::add(m.heads + (home.bucket - Base::first_bucket), 1u);
      placed = slot < S::kSlots;
      if (placed) put_new(home.bucket, slot, home, S::value_of(item));
    }
    barrier();  // no key moves before those are at home
    if (is_new && !placed) {
      const u32 second = D::second_of(t, Base::first_bucket, home);
      u32* const taken = m.heads + (second - Base::first_bucket);
      const u32 slot = looks ? Lines::add(taken, 1u) : S::kSlots;
      placed = slot < S::kSlots;
      if (placed)
        put_new(second, slot, home, S::value_of(item));
      else
        placed = put_for_another<1>(home, second, S::value_of(item));
    }
    if (placed) {
      ++Base::changed;
      Base::flag(number, kChanged);
    }
    enter_left(&m.left, left && !placed, [&](u32 place, u32) { list()[place] = number; });
  }
  // Sets the bit of a hash in a second map. Whether it was clear.
  WARPHASH_FN bool is_first_again(Word hash) {
    u32 x = static_cast<u32>(hash);
    if constexpr (sizeof(Word) == 8) x ^= static_cast<u32>(hash >> 32);
    const u32 bit = mix(x) % Seen::kAgainBits;
    return !(Lines::set_bits(m.before.again() + bit / 32, 1u << bit % 32) >> bit % 32 & 1);
  }

  // Step 4. All threads of the block call it, between two barriers.
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
        if (first + j * threads + id < listed) items[j] = Base::brought(number_in(numbers[j]));
#pragma unroll
      for (u32 j = 0; j < kAtOnce; ++j) {
        if (first + j * threads + id >= listed) continue;
        const auto spot = Base::look(D::home_of(t, S::hash_of(items[j])));
        if (spot.found()) {
          Base::combine_at(spot, items[j]);
          Base::flag(number_in(numbers[j]), kPresent);
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
    enter_left(&m.listed, left, [&](u32 place, u32 j) { list()[place] = number(j); });
  }
  // Calls enter(place, j) for each bit j, where the places begin at a length. Whole warps call it, and add to the length
  // once.
  template <class Enter>
  WARPHASH_FN void enter_left(u32* length, u32 left, const Enter& enter) {
    static_assert(kAtOnce < 8);
    const u32 n = bit_count(left), ones = ballot(n & 1), twos = ballot(n & 2), fours = ballot(n & 4);
    if (!(ones | twos | fours)) return;
    const auto sum = [&](u32 lanes) {
      return bit_count(ones & lanes) + 2 * bit_count(twos & lanes) + 4 * bit_count(fours & lanes);
    };
    u32 place = lane() == 0 ? Lines::add(length, sum(~0u)) : 0;
    place = shuffle(place, 0, kWarpLanes) + sum((1u << lane()) - 1);
    for (; left; left &= left - 1) enter(place++, first_bit(left));
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
