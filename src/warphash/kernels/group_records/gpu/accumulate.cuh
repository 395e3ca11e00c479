// The records of groups on a GPU (group_records/operations.cuh has their words).
//
//   accumulate  each element -> the record of its group, by its number
//
// Layout. group_records/gpu/records.cuh has that of a record. A block has kOwnWords words of its own, for the groups
// with the least numbers. The first of these, the crowds, have a copy of each word for each lane of a warp. The others
// have as many copies as there is room for, at least one. Neighbouring lanes have neighbouring copies:
//
//   own   [ copy 0 | copy 1 | … of group 0 ]  [ … of group 1 ]  …     of accumulator 0, then of accumulator 1, …
//
// Protocol, behind begin_records. The threads write the words of no values to the block's own memory. A barrier. A
// block goes through tiles of elements (core/gpu/batch_tiles.cuh). A thread reads the numbers of kAtOnce elements. Then
// it goes from accumulator to accumulator: it reads the values of these elements, and combines each with the word of
// its group, which is the block's own one if the number is small, and else that in the record. A barrier. The threads
// combine the copies, and the result with the record.
//
// Sums, counts and squares are added by an atomic addition (relaxed). In the memory of a block an integer is added by
// two additions of 32 bits: one of 64 bits is a compare-and-swap in a loop there (sm_90). Extremes of records are
// combined by an atomic minimum or maximum (relaxed). Products, and extremes of a block's own, are combined by a
// compare-and-swap (relaxed) in a loop, which ends as soon as the word would not change. The first look at a word is a
// relaxed load in memory, and a volatile one in the block's own. Words publish nothing: barriers order the steps of a
// block, and the end of a launch orders the launches.
//
// An element with a number that no group has, such as -1, is left out. Columns on a GPU have no nulls.
//
// The order of floating-point sums and products is that in which atomics come: their last bits differ from run to run.
//
// Why own words. All elements of a group combine with one word, and in memory such atomics are a queue
// (groups/gpu/rounds.cuh has the figures, and says why groups with the least numbers are those that may be frequent).
// Why copies: of few groups, the lanes of a warp would queue up for the words of the block, too.
//
// Why crowds. So would lanes of a key that has a large share of the elements, although there are many groups. A key in
// half of 100 M elements, beside 1 M others: the pass took 6.8 ms, and 1.1 of the others alone (H200).
//
// Why two dispatches. The type and the operation of an accumulator are the same for all lanes, so a branch costs
// little. But the code of each pair of them would be large: values are widened to 64 bits by their type, and combined
// by their operation.
#pragma once
#include "core/gpu/batch_tiles.cuh"
#include "group_records/gpu/records.cuh"
#include "platform/extremes.cuh"

namespace warphash {

namespace records {

// ---- values
WARPHASH_FN u64 widened(f32 x) { return bits_as<u64>(static_cast<f64>(x)); }
WARPHASH_FN u64 widened(f64 x) { return bits_as<u64>(x); }
template <class T>
WARPHASH_FN u64 widened(T x) {
  return static_cast<u64>(x);  // signed numbers keep their sign
}

// ---- words
template <class Operation>
WARPHASH_FN void swap_in(u64* at, u64 seen, u64 word) {
  for (;;) {
    const u64 wanted = Operation::combined(seen, word);
    if (wanted == seen) return;
    const u64 before = compare_exchange_word(at, seen, wanted);
    if (before == seen) return;
    seen = before;
  }
}
// The halves of the word apart: the addition whose low half overflows carries into the high half.
WARPHASH_FN void add_in_block(u64* at, u64 word) {
  u32* const halves = reinterpret_cast<u32*>(at);
  const u32 low = static_cast<u32>(word), before = fetch_add(halves, low);
  const u32 high = static_cast<u32>(word >> 32) + (before + low < before);
  if (high) atomic_add(halves + 1, high);
}
template <class Operation>
WARPHASH_FN void combine_in_block(u64* at, u64 word) {
  if constexpr (Operation::kAtomic == Atomic::kAdd)
    add_in_block(at, word);
  else if constexpr (Operation::kAtomic == Atomic::kAddFloat)
    atomic_add_float(at, word);
  else
    swap_in<Operation>(at, *const_cast<const volatile u64*>(at), word);
}

// As combine_in_block(), for global memory.
template <class Operation>
WARPHASH_FN void combine_in_memory(u64* at, u64 word) {
  at = in_global(at);
  if constexpr (Operation::kAtomic == Atomic::kAdd)
    atomic_add(at, word);
  else if constexpr (Operation::kAtomic == Atomic::kAddFloat)
    atomic_add_float(at, word);
  else if constexpr (Operation::kAtomic == Atomic::kMinimum)
    atomic_min(reinterpret_cast<i64*>(at), static_cast<i64>(word));
  else if constexpr (Operation::kAtomic == Atomic::kMaximum)
    atomic_max(reinterpret_cast<i64*>(at), static_cast<i64>(word));
  else
    swap_in<Operation>(at, load_relaxed(at), word);
}

}  // namespace records

// The words that a block keeps in memory of its own.
class OwnWords {
  static constexpr u32 kMostCrowds = 32;
  u64* const memory_;
  const u32 room_;  // words for each accumulator
  const u32 crowds_, groups_, copies_;

  WARPHASH_FN static u32 least(u64 a, u64 b) { return static_cast<u32>(a < b ? a : b); }
  // Crowds take at most half of the room, and no more than what one copy of each group leaves.
  WARPHASH_FN static u32 crowds_of(u64 groups, u32 room) {
    const u64 spare = groups <= room ? room - groups : room / 2;
    return least(groups, least(kMostCrowds, spare / kWarpLanes));
  }
  WARPHASH_FN static u32 copies_of(u32 others, u32 room) {
    const u32 most = others ? room / others : 1;
    return least(most, kWarpLanes);
  }
  WARPHASH_FN u32 words_of_crowds() const { return crowds_ * kWarpLanes; }
  WARPHASH_FN u32 copies(u32 group) const { return group < crowds_ ? kWarpLanes : copies_; }
  WARPHASH_FN u32 first_word(u32 group) const {
    return group < crowds_ ? group * kWarpLanes : words_of_crowds() + (group - crowds_) * copies_;
  }
  WARPHASH_FN u64* words_of(u64 accumulator) const { return memory_ + accumulator * room_; }

 public:
  static constexpr u32 kOwnWords = 6 << 10;

  WARPHASH_FN OwnWords(void* memory, const RecordBatch& b)
      : memory_(static_cast<u64*>(memory)),
        room_(b.width ? static_cast<u32>(kOwnWords / b.width) : 0),
        crowds_(crowds_of(b.expected, room_)),
        groups_(least(b.expected, room_ - crowds_ * kWarpLanes + crowds_)),
        copies_(copies_of(groups_ - crowds_, room_ - crowds_ * kWarpLanes)) {}

  WARPHASH_FN bool has(u32 group) const { return group < groups_; }
  WARPHASH_FN u64* at(u64 accumulator, u32 group) const {
    return words_of(accumulator) + first_word(group) + lane() % copies(group);
  }
  WARPHASH_FN void begin(const RecordBatch& b) const {
    for (u64 accumulator = 0; accumulator < b.width; ++accumulator) {
      const u64 identity = identity_of(accumulator_of(b, accumulator));
      for (u32 k = thread_in_block(); k < first_word(groups_); k += kRoundThreads) words_of(accumulator)[k] = identity;
    }
  }
  // Combines the words with the records.
  WARPHASH_FN void merge(const GroupRecords& t, const RecordBatch& b) const {
    for (u64 accumulator = 0; accumulator < b.width; ++accumulator) {
      u64* const out = warphash::words_of(t, b, 0) + accumulator;
      with_operation(accumulator_of(b, accumulator).operation, Merge{*this, words_of(accumulator), out, b.width});
    }
  }

 private:
  struct Merge {
    const OwnWords& own;
    const u64* words;
    u64* out;
    u64 width;
    template <class Operation>
    WARPHASH_FN void operator()() const {
      for (u32 group = thread_in_block(); group < own.groups_; group += kRoundThreads) {
        u64 word = Operation::kIdentity;
        for (u32 k = 0; k < own.copies(group); ++k) word = Operation::combined(word, words[own.first_word(group) + k]);
        if (word != Operation::kIdentity) records::combine_in_memory<Operation>(out + group * width, word);
      }
    }
  };
};

// Some elements of a thread, kRoundThreads from one to the next. No branch lies around their loads: a thread would wait
// for one before the next begins. So an element behind the batch is read as the last one.
struct ElementsOfThread {
  static constexpr u32 kAtOnce = 4;
  u64 first, n;
  u32 groups[kAtOnce];  // kNowhere: the element is left out
  u64 words[kAtOnce];   // of their values

  WARPHASH_FN ElementsOfThread(const GroupRecords& t, const RecordBatch& b, u64 first_) : first(first_), n(b.n) {
    u64 number[kAtOnce];
    for_each([&](u32 k) {
      number[k] = b.number_bytes == 8 ? load_once(pointer<const u64>(b.numbers) + element(k))
                                      : load_once(pointer<const u32>(b.numbers) + element(k));
    });
    for_each([&](u32 k) { groups[k] = has(k) && number[k] < t.count ? static_cast<u32>(number[k]) : kNowhere; });
  }
  WARPHASH_FN bool has(u32 k) const { return first + k * kRoundThreads < n; }
  WARPHASH_FN u64 element(u32 k) const { return has(k) ? first + k * kRoundThreads : n - 1; }
  template <class See>
  WARPHASH_FN static void for_each(const See& see) {
#pragma unroll
    for (u32 k = 0; k < kAtOnce; ++k) see(k);
  }
};

// ---- the steps of an accumulator, by the types and the operation that it has
struct ReadValues {
  ElementsOfThread& elements;
  u64 values;
  template <class T>
  WARPHASH_FN void operator()() const {
    elements.for_each([&](u32 k) {
      elements.words[k] = records::widened(load_once(pointer<const T>(values) + elements.element(k)));
    });
  }
};
template <class Wide>
struct WordsOfValues {
  ElementsOfThread& elements;
  const f64* centers;  // kSquaresKept, kDistancesKept: by numbers
  template <class Operation>
  WARPHASH_FN void operator()() const {
    elements.for_each([&](u32 k) {
      f64 center = 0;
      if constexpr (Operation::kCentered)
        if (elements.groups[k] != kNowhere) center = centers[elements.groups[k]];
      elements.words[k] = Operation::word(bits_as<Wide>(elements.words[k]), center);
    });
  }
};
struct CombineWords {
  const ElementsOfThread& elements;
  const OwnWords& own;
  u64 accumulator;
  u64* words;  // of the accumulator, in record 0
  u64 width;
  template <class Operation>
  WARPHASH_FN void operator()() const {
    elements.for_each([&](u32 k) {
      const u32 group = elements.groups[k];
      if (group == kNowhere) return;
      own.has(group) ? records::combine_in_block<Operation>(own.at(accumulator, group), elements.words[k])
                     : records::combine_in_memory<Operation>(words + group * width, elements.words[k]);
    });
  }
};

struct Accumulate : OverTilesOfRounds {
  using Table = GroupRecords;
  using Batch = RecordBatch;
  static constexpr u32 kBlocks = 2;

  WARPHASH_FN static void run(const GroupRecords& t, const RecordBatch& b) {
    const OwnWords own(block_memory<sizeof(u64) * OwnWords::kOwnWords>(), b);
    own.begin(b);
    block_barrier();
    for (u64 tile = block() * kRoundTile; tile < b.n; tile += blocks() * kRoundTile)
      for (u32 round = 0; round < kRoundTile; round += ElementsOfThread::kAtOnce * kRoundThreads)
        add(t, b, own, tile + round + thread_in_block());
    block_barrier();
    own.merge(t, b);
  }

 private:
  WARPHASH_FN static void add(const GroupRecords& t, const RecordBatch& b, const OwnWords& own, u64 first) {
    ElementsOfThread elements(t, b, first);
    for (u64 word = 0; word < b.width; ++word) {
      const Accumulator accumulator = accumulator_of(b, word);
      read(b, accumulator, elements);
      with_operation(accumulator.operation, CombineWords{elements, own, word, words_of(t, b, 0) + word, b.width});
    }
  }

  // Gives the elements the words of their values.
  WARPHASH_FN static void read(const RecordBatch& b, const Accumulator& accumulator, ElementsOfThread& elements) {
    if (accumulator.is_count || accumulator.operation == kCountKept)
      return elements.for_each([&](u32 k) { elements.words[k] = 1; });
    const ValueColumn column = pointer<const ValueColumn>(b.columns)[accumulator.column];
    const f64* const centers = pointer<const f64>(accumulator.centers);
    with_type(column.type, ReadValues{elements, column.values});
    if (column.type == kFloat32Value || column.type == kFloat64Value)
      with_operation(accumulator.operation, WordsOfValues<f64>{elements, centers});
    else if (column.type == kUint64Value)
      with_operation(accumulator.operation, WordsOfValues<u64>{elements, centers});
    else
      with_operation(accumulator.operation, WordsOfValues<i64>{elements, centers});
  }
};

}  // namespace warphash
