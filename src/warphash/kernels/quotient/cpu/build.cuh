// The build of all lines of a table from a batch, by threads. A batch of few elements is applied where the lines lie.
//
// Layout. A group is `group_ranges` ranges in a row; a table consists of whole groups. So the group of a hash h is the
// high word of h * groups, as its range is that of h * ranges. A group is as large as the second-level cache of a thread
// may have it, and there are no more groups than that cache has lines for in step 3.
//
//   1. count_parts    counts, for each part of the batch, the elements of each group.
//   2. place_parts    makes places of the counts: groups follow one another, and in each group the parts. `brought` is
//                     mostly the memory of the lines themselves: what a group brings waits where its lines will be. If
//                     a group has more elements than that has room for, this counts in CountLine::mismatches, and
//                     nothing else is done. The host then gives `brought` memory of its own.
//   3. scatter_parts  copies the hash and the value of each element to the place of its part and group, a line at a time
//                     (core/cpu/line_writer.cuh), and flags the elements.
//   4. build_groups   gives a thread one group after another.
//      a. The lines of the group begin vacant in memory of the thread's own, which stays in its cache.
//      b. The homes of a block of elements are computed together, by SIMD. An element sets the bit of its hash in a map. If
//         the bit was clear, no other element with this key has come before: the element takes the next slot of its home by
//         a counter, and compares with no key. If no key repeats, there is no map.
//      c. Elements whose bit was set, and those whose home was full, are inserted as in any batch: kListed at a time,
//         sorted by their ranges. Elements with one key stay in order.
//      d. The finished lines are written past the caches.
//      If there is no memory, nothing is written, which counts as a mismatch.
//
// Others may write to the keys of the batch meanwhile. Step 3 reads each key once, and what follows reads copies. An
// element for whose part and group step 1 counted too few is not written. Such a part counts in
// CountLine::mismatches. Then the table must not be built, because some places hold no element.
//
// Why. Lines in the memory of the table would be fetched and written back, though nothing of them is read. The system
// clears memory that is first touched, which takes as long as a step here, so a build takes little. Step 3 has memory for a line of each group. Ranges of 32 KB are too many: 300 M pairs of 8 + 8 bytes have 204,000, whose lines take
// 13 MB of each thread. Groups of 16 ranges take 0.8 MB there, and 0.6 MB in step 4. (docs/performance/cpu.md)
#pragma once
#include <cstring>

#include "quotient/build.cuh"
#include "quotient/cpu/abi.cuh"
#include "quotient/cpu/apply.cuh"
#include "quotient/cpu/bring.cuh"

namespace warphash {

struct OverParts {
  using Table = QuotientTable;
  using Batch = BuildByGroupsBatch;

  // Calls work(part) for the parts of a launch.
  template <class Work>
  static void for_each_part(const Batch& b, u64 begin, u64 end, const Work& work) {
    for (u64 part = (begin + kPartElements - 1) / kPartElements; part * kPartElements < end; ++part)
      if (part < b.parts) work(part);
  }
  WARPHASH_FN static u64 begin_of(const Batch& b, u64 part) { return part * b.part_length; }
  WARPHASH_FN static u64 end_of(const Batch& b, u64 part) {
    const u64 end = begin_of(b, part + 1);
    return end < b.n ? end : b.n;
  }
  WARPHASH_FN static u32* places_of(const Batch& b, u64 part) { return pointer<u32>(b.places) + part * b.groups; }

  // The table whose ranges are the groups.
  static QuotientTable in_groups(const QuotientTable& t, const Batch& b) {
    QuotientTable table = t;
    table.ranges = b.groups;
    return table;
  }
};

template <class D>
struct CountParts : OverParts {};

template <class D>
struct CountPartsByThreads : CountParts<D> {
  static constexpr bool kWalks = true;
  static void run(const QuotientTable& t, const BuildByGroupsBatch& b, u64 begin, u64 end) {
    const QuotientTable table = OverParts::in_groups(t, b);
    OverParts::for_each_part(b, begin, end, [&](u64 part) {
      u32* const counts = OverParts::places_of(b, part);
      std::memset(counts, 0, b.groups * sizeof(u32));
      BringByThreads<D>::count(table, b, OverParts::begin_of(b, part), OverParts::end_of(b, part), counts);
    });
  }
};

struct PlaceParts : OverParts {
  static constexpr bool kWalks = true;
  static void run(const QuotientTable&, const BuildByGroupsBatch& b, u64, u64) {
    if (b.capacity && has_crowded_group(b)) return atomic_add(&count_line(b, 0).mismatches, u64(1));
    u32 place = 0;
    for (u64 group = 0; group < b.groups; ++group) {
      if (b.capacity) place = static_cast<u32>(group * b.capacity);
      u32* at = pointer<u32>(b.places) + group;
      for (u64 part = 0; part < b.parts; ++part, at += b.groups) {
        const u32 count = *at;
        *at = place;
        place += count;
      }
      *at = place;
    }
  }

 private:
  static bool has_crowded_group(const BuildByGroupsBatch& b) {
    for (u64 group = 0; group < b.groups; ++group) {
      u64 elements = 0;
      for (u64 part = 0; part < b.parts; ++part) elements += places_of(b, part)[group];
      if (elements > b.capacity) return true;
    }
    return false;
  }
};

template <class D>
struct ScatterParts : OverParts {};

template <class D>
struct ScatterPartsByThreads : ScatterByThreads<D> {
  using Base = ScatterByThreads<D>;
  using Batch = BuildByGroupsBatch;
  using S = typename D::S;
  using Brought = typename S::Brought;
  static constexpr bool kWalks = true;

  static void run(const QuotientTable& t, const Batch& b, u64 begin, u64 end) {
    const QuotientTable table = OverParts::in_groups(t, b);
    OverParts::for_each_part(b, begin, end, [&](u64 part) {
      const u64 first = OverParts::begin_of(b, part), last = OverParts::end_of(b, part);
      if (may_flag_ahead(b)) Base::flag_all(b, first, last);
      if (!scatter(table, b, part, first, last)) atomic_add(&count_line(b, part).mismatches, u64(1));
    });
  }

 private:
  // Whether each place of the part has an element.
  static bool scatter(const QuotientTable& table, const Batch& b, u64 part, u64 first, u64 last) {
    const u32* const firsts = OverParts::places_of(b, part);
    // The next part of a group follows. Behind the last part, the next group does.
    const u32* const ends = OverParts::places_of(b, part + 1);
    Counters counters(b.groups);
    LineWriter<Brought> brought(pointer<Brought>(b.brought), firsts, b.groups, ends);
    LineWriter<u32> numbers(pointer<u32>(b.numbers), firsts, b.out_flags ? b.groups : 1, ends);
    u32* const places = counters.begin();
    if (!places || !brought.has_memory() || !numbers.has_memory()) return false;
    std::memcpy(places, firsts, b.groups * sizeof(u32));
    Base::bring(table, b, first, last, places, brought, numbers);
    return std::memcmp(places, ends, b.groups * sizeof(u32)) == 0;
  }
};

template <class D>
using CountPartsForAllForms = CountParts<WithoutForm<typename D::S::Word, 0>>;
template <class D>
using ScatterPartsForAllForms = ScatterParts<WithoutForm<typename D::S::Word, 4 * D::S::kValueWords>>;

// Builds groups in memory of its own.
template <class D>
class GroupBuilder {
  using S = typename D::S;
  using Word = typename S::Word;
  using Brought = typename S::Brought;
  using Range = RangeOfOneThread<D, LinesInPlace>;
  static constexpr u32 kBlock = 64, kListed = 1024, kMostGroupRanges = 256;
  static constexpr u32 kMapBits = S::kSlots > 10 ? 1u << 18 : S::kSlots > 4 ? 1u << 17 : 1u << 15;  // of a range

  const QuotientTable t;
  const BuildByGroupsBatch b;
  const u32 ranges, range_buckets, buckets;  // of a group, of a range, and of a group
  const u32 map_bits;
  u8* const memory_;  // none if there is none
  Line* const lines_;
  u32* const map_;   // of step b
  u32* const list_;  // of the elements that step b leaves, if a group has a capacity
  u8* const taken_;  // slots of each bucket
  alignas(64) u8 memory_of_range_[Range::kMemoryBytes];

  u64 line_bytes() const { return u64(buckets) * sizeof(Line); }
  u64 memory_bytes() const {
    const u64 bytes = line_bytes() + map_bits / 8 + b.capacity * sizeof(u32) + buckets;
    return (bytes + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line);
  }

 public:
  GroupBuilder(const QuotientTable& table, const BuildByGroupsBatch& batch)
      : t(table),
        b(batch),
        ranges(static_cast<u32>(b.group_ranges)),
        range_buckets(static_cast<u32>(t.range_buckets)),
        buckets(ranges * range_buckets),
        map_bits(kMapBits * ranges),
        memory_(static_cast<u8*>(aligned_alloc(sizeof(Line), memory_bytes()))),
        lines_(reinterpret_cast<Line*>(memory_)),
        map_(reinterpret_cast<u32*>(memory_ + line_bytes())),
        list_(map_ + map_bits / 32),
        taken_(reinterpret_cast<u8*>(list_ + b.capacity)) {
    Range::prepare(memory_of_range_);
  }
  ~GroupBuilder() { free(memory_); }
  GroupBuilder(const GroupBuilder&) = delete;

  void build(u32 group) {
    const u32 start = OverParts::places_of(b, 0)[group], elements = OverParts::places_of(b, b.parts)[group] - start;
    if (!memory_) return atomic_add(&count_line(b, group).mismatches, u64(1));
    std::memset(static_cast<void*>(lines_), 0, line_bytes());
    std::memset(taken_, 0, buckets);
    u32* const list = b.capacity ? list_ : pointer<u32>(b.left) + start;
    const u32 left = b.unique ? put_first_keys<true>(start, elements, group * buckets, list)
                              : put_first_keys<false>(start, elements, group * buckets, list);
    for (u32 k = 0; k < left; k += kListed)
      insert(group, start, elements, list + k, left - k < kListed ? left - k : kListed);
    Line* const to = line_at(t, group * buckets);
    for (u32 k = 0; k < buckets; ++k) stream_line(to + k, lines_ + k);
    end_streams();
  }

 private:
  // Step b. Returns how many elements are left, which are listed.
  template <bool kUnique>
  [[gnu::noinline]] u32 put_first_keys(u32 start, u32 elements, u32 first_bucket, u32* list) {
    if (!kUnique) std::memset(map_, 0, map_bits / 8);
    const QuotientTable table = t;  // local copies: no store to a line changes them
    const Brought* const items = pointer<const Brought>(b.brought) + start;
    u32 *const words = lines_->words, *const map = map_;
    u8* const taken = taken_;
    const u32 bits_of_map = map_bits;
    const bool flags = b.out_flags && !may_flag_ahead(b);
    u32 left = 0, changed = 0;
    u32 buckets_of[kBlock], bits[kBlock];
    Word remainders[kBlock];
    for (u32 first = 0; first < elements; first += kBlock) {
      const u32 n = elements - first < kBlock ? elements - first : kBlock;
      const Brought* const some = items + first;
      for (u32 k = 0; k < n; ++k) {
        const Word hash = S::hash_of(some[k]);
        const auto home = D::home_of(table, hash);
        buckets_of[k] = home.bucket - first_bucket;
        remainders[k] = home.remainder;
        if (!kUnique) bits[k] = multiply_high(D::mixed(hash), bits_of_map);
      }
      for (u32 k = 0; k < n; ++k) prefetch(words + u64(buckets_of[k]) * kLineWords);
      for (u32 k = 0; k < n; ++k) {
        const u32 slot = taken[buckets_of[k]];
        u32* const w = words + u64(buckets_of[k]) * kLineWords;
        bool is_new = true;
        if (!kUnique) {
          const u32 bit = 1u << bits[k] % 32, seen = map[bits[k] / 32];
          map[bits[k] / 32] = seen | bit;
          if (seen & bit) [[unlikely]]
            is_new = slot < S::kSlots && !S::matches(w, remainders[k], false);
        }
        if (is_new && slot < S::kSlots) [[likely]] {
          taken[buckets_of[k]] = static_cast<u8>(slot + 1);
          put<S>(w, slot, remainders[k]);
          if constexpr (S::kHasValue) *S::value(w, slot) = S::value_of(some[k]);
          if (flags) Range::flag_at(b, start + first + k, kChanged);
          ++changed;
        } else {
          list[left++] = first + k;
        }
      }
    }
    if (changed) atomic_add(&count_line(b, start).changed, u64(changed));
    return left;
  }
  // To a slot of its home that was never taken. Slots of whole 16-bit words are not read.
  template <class Slots>
  WARPHASH_FN static void put(u32* w, u32 slot, Word remainder) {
    if constexpr (Slots::kRemainderBits < Slots::kWordBits && (Slots::kRemainderBits + 2) % 16 == 0)
      Slots::put_beside(w, slot, remainder);
    else
      Slots::put(w, slot, remainder, false);
  }

  // Step c, for `n` listed elements of a group.
  [[gnu::noinline]] void insert(u32 group, u32 start, u32 elements, const u32* list, u32 n) {
    const Brought* const items = pointer<const Brought>(b.brought) + start;
    u8 range_of[kListed];
    u32 ends[kMostGroupRanges + 1] = {}, sorted[kListed];
    for (u32 j = 0; j < n; ++j) {
      range_of[j] = static_cast<u8>(D::range_of(t, S::hash_of(items[list[j]])) - group * ranges);
      ++ends[range_of[j] + 1];
    }
    for (u32 r = 0; r < ranges; ++r) ends[r + 1] += ends[r];
    for (u32 j = 0; j < n; ++j) sorted[ends[range_of[j]]++] = list[j];
    for (u32 r = 0, k = 0; r < ranges; ++r) {
      if (k == ends[r]) continue;
      InGroup range(t, b, group * ranges + r, start, elements, memory_of_range_);
      range.lines = lines_[u64(r) * range_buckets].words;
      for (; k < ends[r]; ++k) range.insert(sorted[k], items[sorted[k]]);
      range.finish();
    }
  }

  // A range whose elements are those of its group.
  struct Given {
    QuotientTable table;
    u32 elements, start;
    Given(const QuotientTable& t, u32 range, u32 first, u32 n) : table(t), elements(n), start(first) {
      table.counters = reinterpret_cast<u64>(&elements) - u64(range) * sizeof(u32);
      table.starts = reinterpret_cast<u64>(&start) - u64(range) * sizeof(u32);
    }
    Given(const Given&) = delete;
  };
  struct InGroup : Given, Range {
    InGroup(const QuotientTable& t, const QuotientBatch& b, u32 range, u32 first, u32 n, void* memory)
        : Given(t, range, first, n), Range(Given::table, b, range, memory) {}
  };
};

template <class D>
struct BuildGroups : OverParts {};

template <class D>
struct BuildGroupsByThreads : BuildGroups<D> {
  static constexpr bool kWalks = true;
  static void run(const QuotientTable& t, const BuildByGroupsBatch& b, u64 begin, u64 end) {
    GroupBuilder<D> builder(t, b);
    for (u64 group = (begin + kApplyingThreads - 1) / kApplyingThreads; group * kApplyingThreads < end; ++group)
      if (group < b.groups) builder.build(static_cast<u32>(group));
  }
};

// The tasks that are listed do not walk, so a thread has several ranges of a launch, and others help a slow one.
template <class D>
struct TaskOnCpu<CountParts<D>> {
  using type = CountPartsByThreads<D>;
};
template <class D>
struct TaskOnCpu<ScatterParts<D>> {
  using type = ScatterPartsByThreads<D>;
};
template <class D>
struct TaskOnCpu<BuildGroups<D>> {
  using type = BuildGroupsByThreads<D>;
};
template <class D>
struct TaskOnCpu<OneThreadARange<BuildRange<D, LinesInPlace>>> {
  using type = OneThreadARange<ApplyAlone<D>>;
};

}  // namespace warphash
