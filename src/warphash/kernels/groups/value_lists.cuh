// The values of keys that repeat: each key is a group with a number, and each group has a list of segments.
//
//   link       a new segment for each group of a batch, behind those that the group has
//   first      elements -> the first values of their groups, and which elements have one
//   count      elements -> how many values their groups have
//   emit       elements -> all values of their groups, and their keys as often; an element is a value
//   emit_keys  the same; an element is a key
//   pop        erases the first value of the group of each element
//   drop       erases all values of the group of each element
//   relist     one segment for each group; writes ListTotals as link does
//
// Layout. A segment is a run of values in a row, wherever they lie. The values of a batch lie group by group, so the batch
// has one segment for each of its groups.
//
//   group    states  [ values: 32 | erased first values: 32 ]      ends  [ first segment: 32 | last segment: 32 ]
//   segment  begins  [ address of its values: 64 ]                 links [ length: 32 | next segment: 32 ]
//
//   group 7 -> segment 7 [ a b c ] -> segment 41 [ d ] -> segment 90 [ e f ]      state: 5 values, 1 erased: b c d e f
//
// The number of the next segment of the last one means nothing: a list ends with the values of its group. A group without
// values has no segments, whatever its ends say.
//
// Protocol.
//   1. link: each group comes once in a launch, so nothing is atomic. The last segment gets its follower, the group its
//      new end and count. First segments without values leave the list: otherwise a key whose values come and go, as in a
//      queue, would have an ever longer list. The thread of element 0 writes ListTotals: a host that is interrupted behind
//      the launch reads there what the lists hold.
//   2. pop, drop: several elements may have one group. An element changes the state by a compare-and-swap (relaxed), so each
//      value is erased once. Nothing else depends on the state before the launch ends.
//   3. Lookups write nothing that another element reads.
// The end of a launch orders it before the next one.
//
// Why. A build writes values once, group by group, and a lookup copies runs; a node for each pair would cost a line
// for each. A batch that comes later touches its own groups alone. Lists of many short segments are made one segment each
// again by `relist`, when this pays (storage/groups/grouped_rows.py).
#pragma once
#include "core/bytes.cuh"
#include "core/straight.cuh"
#include "groups/abi.cuh"

namespace warphash {

WARPHASH_FN u32 low_half(u64 word) { return static_cast<u32>(word); }
WARPHASH_FN u32 high_half(u64 word) { return static_cast<u32>(word >> 32); }
WARPHASH_FN u64 halves(u32 low, u32 high) { return static_cast<u64>(high) << 32 | low; }

WARPHASH_FN u32 group_of(const ListBatch& b, u64 i) { return reinterpret_cast<const u32*>(b.numbers)[i]; }
WARPHASH_FN bool has_group(const ListBatch& b, u64 i) { return !b.flags || reinterpret_cast<const u8*>(b.flags)[i]; }
WARPHASH_FN u64* states_of(const ValueLists& t) { return reinterpret_cast<u64*>(t.states); }
WARPHASH_FN u64* ends_of(const ValueLists& t) { return reinterpret_cast<u64*>(t.ends); }
WARPHASH_FN u64* begins_of(const ValueLists& t) { return reinterpret_cast<u64*>(t.begins); }
WARPHASH_FN u64* links_of(const ValueLists& t) { return reinterpret_cast<u64*>(t.links); }
// The state of the group of an element: 0 without a group.
WARPHASH_FN u64 state_of(const ValueLists& t, const ListBatch& b, u64 i) {
  return has_group(b, i) ? load_relaxed(states_of(t) + group_of(b, i)) : 0;
}

// A place in a list.
struct ListPlace {
  u32 segment;
  u64 at;  // of the segment's values

  // The value with so many before it in the segments of a group.
  WARPHASH_FN static ListPlace of(const ValueLists& t, u32 group, u64 before) {
    ListPlace place = {low_half(ends_of(t)[group]), before};
    while (place.at >= place.length(t)) {
      place.at -= place.length(t);
      place.segment = high_half(links_of(t)[place.segment]);
    }
    return place;
  }
  WARPHASH_FN u32 length(const ValueLists& t) const { return low_half(links_of(t)[segment]); }
  WARPHASH_FN const u8* row(const ValueLists& t) const {
    return reinterpret_cast<const u8*>(begins_of(t)[segment]) + at * t.row_bytes;
  }
};

// A task whose element begins at the state of its group.
struct OfGroups : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static const void* hint(const ValueLists& t, const ListBatch& b, u64 i) {
    return states_of(t) + group_of(b, i);
  }
};

struct LinkSegments : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const u32 group = group_of(b, i), segment = static_cast<u32>(b.first_segment + i);
    const u32 length = reinterpret_cast<const u32*>(b.counts)[i];
    begins_of(t)[segment] = b.values + reinterpret_cast<const u64*>(b.offsets)[i] * t.row_bytes;
    links_of(t)[segment] = length;
    const u64 state = states_of(t)[group], ends = ends_of(t)[group];
    if (low_half(state)) {
      ListPlace first = {low_half(ends), high_half(state)};
      if (first.at) first = ListPlace::of(t, group, first.at);
      u64& last = links_of(t)[high_half(ends)];
      last = halves(low_half(last), segment);
      ends_of(t)[group] = halves(first.segment, segment);
      states_of(t)[group] = halves(low_half(state) + length, static_cast<u32>(first.at));
    } else {
      ends_of(t)[group] = halves(segment, segment);
      states_of(t)[group] = length;
    }
    if (i == 0) *reinterpret_cast<ListTotals*>(b.totals) = {b.groups, b.first_segment + b.n};
    return false;
  }
};

struct FirstValue : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const u64 state = state_of(t, b, i);
    if (b.out_flags) reinterpret_cast<u8*>(b.out_flags)[i] = low_half(state) != 0;
    if (!b.out_values) return false;
    const u8* const row = low_half(state) ? ListPlace::of(t, group_of(b, i), high_half(state)).row(t)
                                          : reinterpret_cast<const u8*>(b.default_row);
    copy_row(reinterpret_cast<u8*>(b.out_values) + i * t.row_bytes, row, t.row_bytes);
    return false;
  }
};

struct CountValues : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    reinterpret_cast<u32*>(b.out_counts)[i] = low_half(state_of(t, b, i));
    return false;
  }
};

// Copies value `rank` of the group of element i, and the element's key, to the place `to` among those of all.
WARPHASH_FN void emit_value(const ValueLists& t, const ListBatch& b, u64 i, const u8* value, u64 to) {
  if (b.out_values) copy_row(reinterpret_cast<u8*>(b.out_values) + to * t.row_bytes, value, t.row_bytes);
  if (b.out_keys)
    copy_row(reinterpret_cast<u8*>(b.out_keys) + to * b.key_bytes,
             reinterpret_cast<const u8*>(b.keys) + i * b.key_bytes, b.key_bytes);
}

// The element is found by a binary search: so a key with many values keeps many threads busy, and not one.
struct EmitValues : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 to, State&) {
    const u64* const offsets = reinterpret_cast<const u64*>(b.offsets);
    u64 low = 0, high = b.elements;
    while (high - low > 1) {
      const u64 middle = (low + high) / 2;
      (offsets[middle] <= to ? low : high) = middle;
    }
    const u32 group = group_of(b, low);
    const u64 before = high_half(states_of(t)[group]) + (to - offsets[low]);
    emit_value(t, b, low, ListPlace::of(t, group, before).row(t), to);
    return false;
  }
};

struct EmitOfKeys : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const u64 state = state_of(t, b, i);
    if (!low_half(state)) return false;
    const u64 to = reinterpret_cast<const u64*>(b.offsets)[i];
    ListPlace place = ListPlace::of(t, group_of(b, i), high_half(state));
    for (u32 k = 0; k < low_half(state); ++k, ++place.at) {
      if (place.at == place.length(t)) place = {high_half(links_of(t)[place.segment]), 0};
      emit_value(t, b, i, place.row(t), to + k);
    }
    return false;
  }
};

struct PopValue : OfGroups {
  static constexpr bool kCounts = true;
  struct State {
    bool erased;
  };
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State& s) {
    u64 seen = state_of(t, b, i);
    while (low_half(seen)) {
      const u64 popped = halves(low_half(seen) - 1, high_half(seen) + 1);
      const u64 before = compare_exchange_word(states_of(t) + group_of(b, i), seen, popped);
      if (before == seen) break;
      seen = before;
    }
    s.erased = low_half(seen) != 0;
    if (b.out_flags) reinterpret_cast<u8*>(b.out_flags)[i] = s.erased;
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    tally.erased += live && s.erased;
  }
};

struct DropValues : OfGroups {
  static constexpr bool kCounts = true;
  struct State {
    u32 erased;
  };
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State& s) {
    u64 seen = state_of(t, b, i);
    while (low_half(seen)) {
      const u64 before = compare_exchange_word(states_of(t) + group_of(b, i), seen, 0ull);
      if (before == seen) break;
      seen = before;
    }
    s.erased = low_half(seen);
    reinterpret_cast<u32*>(b.out_counts)[i] = s.erased;
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State& s, bool live, Tally& tally) {
    if (live) tally.erased += s.erased;
  }
};

struct Relist : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const u32 count = reinterpret_cast<const u32*>(b.counts)[i], segment = static_cast<u32>(i);
    begins_of(t)[i] = b.values + reinterpret_cast<const u64*>(b.offsets)[i] * t.row_bytes;
    links_of(t)[i] = count;
    states_of(t)[i] = count;
    ends_of(t)[i] = halves(segment, segment);
    if (i == 0) *reinterpret_cast<ListTotals*>(b.totals) = {b.n, b.n};
    return false;
  }
};

// ---- numbers of groups
// Numbers in a row, from `groups` on.
struct CountUp : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists&, const ListBatch& b, u64 i, State&) {
    reinterpret_cast<u32*>(b.numbers)[i] = static_cast<u32>(b.groups + i);
    return false;
  }
};

// Rows of the elements that `numbers` names.
struct TakeRowsOf : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static const void* hint(const ValueLists&, const ListBatch& b, u64 i) {
    return reinterpret_cast<const u8*>(b.keys) + group_of(b, i) * b.key_bytes;
  }
  WARPHASH_FN static bool start(const ValueLists&, const ListBatch& b, u64 i, State&) {
    copy_row(reinterpret_cast<u8*>(b.out_keys) + i * b.key_bytes,
             reinterpret_cast<const u8*>(b.keys) + group_of(b, i) * b.key_bytes, b.key_bytes);
    return false;
  }
};

}  // namespace warphash

#define WARPHASH_LIST_ENTRIES                     \
  WARPHASH_ENTRY(link, warphash::LinkSegments)    \
  WARPHASH_ENTRY(first, warphash::FirstValue)     \
  WARPHASH_ENTRY(count, warphash::CountValues)    \
  WARPHASH_ENTRY(emit, warphash::EmitValues)      \
  WARPHASH_ENTRY(emit_keys, warphash::EmitOfKeys) \
  WARPHASH_ENTRY(pop, warphash::PopValue)         \
  WARPHASH_ENTRY(drop, warphash::DropValues)      \
  WARPHASH_ENTRY(relist, warphash::Relist)        \
  WARPHASH_ENTRY(count_up, warphash::CountUp)     \
  WARPHASH_ENTRY(take_rows, warphash::TakeRowsOf)
