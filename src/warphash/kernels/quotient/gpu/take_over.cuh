// Builds the ranges of a table of the pairs of another one, which has the same hash constants and as many slots a bucket:
// how a table changes its size.
//
// Where the keys of a range come from. The home bucket of a key is the high word of its hash times the number of buckets.
// So the keys of one new range had their homes in a row of old buckets. Those that are there lie in this row, and the
// guests somewhere in the ranges that it begins and ends in:
//
//   old buckets   ..|---- range ----|---- range ----|..
//   homes                  [ row, all slots ]
//   others          [guests]                [guests]
//
// Protocol. A barrier ends each step. A block has a new range for itself, and only reads the old ones.
//   1. All lines of the new range are vacant, in memory that the block shares.
//   2. Threads take the slots of the row, kAtOnce at a time, and then the guests of other lines, and compute the hashes
//      of their keys. Keys of neighbouring ranges are left to other blocks. All keys are different, so each takes the
//      next slot of its home by a counter, as in a build (quotient/build.cuh).
//   3. Keys whose home was full are listed in step 2, and are now inserted in rounds (quotient/range.cuh).
//
// A table that grows for a batch (`take_over_with`) gets the batch at once: its elements have been brought to the new
// ranges before (quotient/gpu/partition.cuh). The old lines stay as they are, so the table keeps them if something fails.
//   2. Each key that is taken also sets the bit of its hash in the map of a build.
//   2b. The elements of the batch that find their bit clear are new keys, and take the next slots of their homes, as in
//      step 2 of a build. The others are listed. If they are many, those whose keys are there leave the list.
//   3b. Behind step 3, the listed elements are inserted in rounds: the pair of a key comes first.
//   4. The elements of a crowded range stay where they are, for other kernels (quotient/crowds.cuh).
//   The report counts the keys of the batch alone as changed.
//
// Why. The other way is a kernel for each: `take_over` writes the lines, and `apply` reads and writes all of them once
// more, and inserts each element in rounds. Of a range of 512 lines, that is 64 KB more.
//
// The list. Until a block is done, nobody needs the lines in global memory to which its range goes. The list lies there:
// 64 bytes a bucket. A range which that is too small for has far more keys than slots, and keys beyond it are unplaced.
//
// Every line is written, also those of ranges without keys, so new lines need not be cleared. Old lines stay as they are.
//
// Memory order: relaxed, as in quotient/range.cuh.
#pragma once
#include "quotient/build.cuh"
#include "quotient/gpu/lines.cuh"

namespace warphash {

// What both have in common. kWithBatch: of `take_over_with`. Base: of its blocks.
template <class D, class Base, bool kWithBatch>
struct TakeOverLines : Base {
  using Batch = TakeOverBatch;
  using Lines = LinesByQuads;
  using S = typename D::S;
  using Word = typename S::Word;
  using Value = typename S::Value;
  using Brought = typename S::Brought;
  using Base::b, Base::t, Base::m, Base::id, Base::threads, Base::size, Base::first_bucket, Base::elements;
  static constexpr u32 kAtOnce = 4;       // slots of a thread whose loads are under way
  static constexpr u32 kLinesAtOnce = 2;  // and lines, in a search for guests

  // All of them.
  WARPHASH_FN static u64 ranges_of(const QuotientTable& t, const Batch&) { return t.ranges; }
  WARPHASH_FN static u32 range_at(const Batch&, u64 number) { return static_cast<u32>(number); }
  WARPHASH_FN static bool takes(const QuotientTable&, const Batch&, u32) { return true; }

  WARPHASH_FN TakeOverLines(const QuotientTable& table, const Batch& batch, u32 number, void* memory)
      : Base(table, batch, number, memory) {
    old.slots = batch.source_slots;
    old.buckets = batch.source_buckets;
    old.range_buckets = batch.source_range_buckets;
  }

 protected:
  // Steps 1 and 2. The memory is prepared.
  WARPHASH_FN void take_pairs() {
    Base::lines = Lines::open_vacant(m.range, line_at(t, first_bucket), size, id, threads);
    if constexpr (kWithBatch) Base::clear_seen(0);
    if (id == 0) m.listed = 0;
    block_barrier();
    take_keys();
    block_barrier();
  }
  // The pairs that step 2 has left, and how many they are.
  WARPHASH_FN Brought* pairs() const { return reinterpret_cast<Brought*>(line_at(t, first_bucket)); }
  WARPHASH_FN u32 listed_pairs() const { return m.listed < most_listed() ? m.listed : most_listed(); }

 private:
  QuotientTable old;  // as far as a hash and its place depend on it

  WARPHASH_FN u32 most_listed() const { return size * (sizeof(Line) / sizeof(Brought)); }
  WARPHASH_FN void take_keys() {
    const u64 of_old = old.buckets, of_new = t.ranges, number = Base::range;
    const u32 size_of_old = static_cast<u32>(old.range_buckets);
    const u32 begin = static_cast<u32>(number * of_old / of_new);
    const u32 end = static_cast<u32>(((number + 1) * of_old + of_new - 1) / of_new);
    for (u32 first = D::first_of_range(old, begin); first < end; first += size_of_old) {
      const u32 from = first < begin ? begin : first, behind = first + size_of_old, to = end < behind ? end : behind;
      const u32 slots = (to - from) * S::kSlots, others = size_of_old - (to - from);
      for (u32 k = id; k < slots; k += kAtOnce * threads) take_slots(first, from, k, slots);
      for (u32 k = id; k < others; k += kLinesAtOnce * threads) take_guests(first, from, to, k, others);
    }
  }

  // The keys in some of the `n` slots from bucket `from` on, of the old range that begins at `first`.
  WARPHASH_FN void take_slots(u32 first, u32 from, u32 begin, u32 n) {
    Home<Word> homes[kAtOnce];
    Value values[kAtOnce];
    u32 live = 0;  // bits of slots
#pragma unroll
    for (u32 j = 0; j < kAtOnce; ++j) {
      const u32 k = begin + j * threads, bucket = from + k / S::kSlots, slot = k % S::kSlots;
      if (k < n && take(first, bucket, slot, homes[j], values[j])) live |= 1u << j;
    }
    put_keys(homes, values, live);
  }

  // The guests in some of the `n` lines of the old range that are not in [from, to).
  WARPHASH_FN void take_guests(u32 first, u32 from, u32 to, u32 begin, u32 n) {
    u32 buckets[kLinesAtOnce], guests[kLinesAtOnce];
#pragma unroll
    for (u32 j = 0; j < kLinesAtOnce; ++j) {
      const u32 k = begin + j * threads, bucket = first + k;
      buckets[j] = bucket < from ? bucket : bucket + (to - from);
      u32 words[kLineWords];
      guests[j] = k < n ? S::guests(Lines::template read<S::kReadWords>(line_at(old, buckets[j]), words)) : 0;
    }
#pragma unroll
    for (u32 j = 0; j < kLinesAtOnce; ++j) {
      for (u32 left = guests[j]; left; left &= left - 1) {
        Home<Word> homes[1];
        Value values[1];
        put_keys(homes, values, take(first, buckets[j], first_bit(left), homes[0], values[0]));
      }
    }
  }

  // Reads a slot; false if it is vacant.
  WARPHASH_FN bool take(u32 first, u32 bucket, u32 slot, Home<Word>& home, Value& value) const {
    const u32* const w = line_at(old, bucket)->words;
    value = 0;
    if constexpr (S::kHasValue) value = *S::value(w, slot);  // occupied or not: nobody waits for it yet
    home = D::home_in(old, first, w, bucket, slot);
    return S::is_occupied(w, slot);
  }

  // Puts those keys that are of this range. `live` has a bit for each that is a key.
  template <u32 kN>
  WARPHASH_FN void put_keys(const Home<Word> (&homes)[kN], const Value (&values)[kN], u32 live) {
    Word hashes[kN];
    u32 slots[kN];
#pragma unroll
    for (u32 j = 0; j < kN; ++j) {
      slots[j] = 0;
      if (!(live >> j & 1)) continue;
      hashes[j] = D::hash_of(old, homes[j]);
      const u32 number = D::home_of(t, hashes[j]).bucket - first_bucket;
      if (number < size)
        slots[j] = Lines::add(m.heads + number, 1u);
      else
        live &= ~(1u << j);
    }
#pragma unroll
    for (u32 j = 0; j < kN; ++j) {
      if (!(live >> j & 1)) continue;
      if constexpr (kWithBatch) Base::set_bit(hashes[j]);
      if (slots[j] < S::kSlots)
        Base::put_at_home(Brought::make(hashes[j], values[j]), slots[j]), Base::changed += !kWithBatch;
      else
        leave(hashes[j], values[j]);
    }
  }
  WARPHASH_FN void leave(Word hash, Value value) {
    const u32 place = Lines::add(&m.listed, 1u);
    if (place < most_listed())
      pairs()[place] = Brought::make(hash, value);
    else
      Base::note_unplaced();
  }
};

template <class D>
struct TakeOverRange : TakeOverLines<D, InRange<D, LinesByQuads>, false> {
  using Base = TakeOverLines<D, InRange<D, LinesByQuads>, false>;
  using Base::Base;
  using typename Base::Brought;
  WARPHASH_FN void run() {
    Base::take_pairs();
    Base::in_rounds(
        Base::listed_pairs(), [&](u32 k) { return Base::pairs()[k]; },
        [&](u32 first, bool live, const Brought& item) { Base::insert_round(first, live, item, first + Base::id); });
    Base::finish();
  }
};

template <class D>
struct TakeOverRangeWithBatch : TakeOverLines<D, BuildRange<D, LinesByQuads, false>, true> {
  using Base = TakeOverLines<D, BuildRange<D, LinesByQuads, false>, true>;
  using Base::b, Base::m, Base::id, Base::threads, Base::elements;
  using Base::Base;
  using typename Base::Brought;
  WARPHASH_FN void run() {
    const bool crowded = is_crowded(b, elements, Base::size * Base::S::kSlots);
    Base::take_pairs();
    const u32 n_pairs = Base::listed_pairs();
    block_barrier();  // all have read the length
    if (id == 0) m.listed = 0;
    block_barrier();
    if (!crowded) Base::put_first_keys();
    block_barrier();
    Base::settle_many();
    place_listed(n_pairs);
    Base::finish();
    if (!crowded || id != 0) return;
    *counter_of(Base::t, Base::range) = elements;
    enter_crowd(b, Base::range, elements);
  }

 private:
  // Rounds for the pairs that are left, and then for the elements: no round has both, since the pair of a key comes first.
  WARPHASH_FN void place_listed(u32 n_pairs) {
    const u32 behind = (n_pairs + threads - 1) / threads * threads;
    Base::in_rounds(
        behind + m.listed,
        [&](u32 k) {
          return k < behind ? Base::pairs()[k < n_pairs ? k : 0] : Base::brought(Base::list()[k - behind]);
        },
        [&](u32 first, bool live, const Brought& item) {
          const bool is_pair = first < behind;
          live &= !is_pair || first + id < n_pairs;
          Base::insert_in_round(first, live, item, [&](u8 with) {
            if (with == kUnplaced) Base::note_unplaced();
            if (is_pair) return;
            Base::changed += with == kChanged;
            Base::flag(Base::list()[first + id - behind], with);
          });
        });
  }
};

}  // namespace warphash
