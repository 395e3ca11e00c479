// The values of keys that repeat: each key is a group with a number, and each group has a list of segments.
//
//   link       a new segment for each group of a batch, behind those that the group has
//   first      elements -> the first values of their groups, and which elements have one
//   count      elements -> how many values their groups have
//   emit       elements -> all values of their groups, and their keys as often; an element is a value (groups/gpu/emit.cuh)
//   emit_keys  the same; an element is a key (groups/cpu/list_entries.cuh)
//   pop        erases the first value of the group of each element
//   drop       erases all values of the group of each element
//   relist     one segment for each group; writes ListTotals as link does
//
// Layout. A segment is a run of values in a row, wherever they lie. The values of a batch lie group by group, so the batch
// has one segment for each of its groups. Groups and segments have a record of 16 bytes each, aligned to 16:
//
//   byte      0           4                     8                12               16
//             +---- 32 ---+-------- 32 ---------+------ 32 ------+------ 32 ------+
//   group     |   values  | erased first values | first segment  |  last segment  |
//             +-----------+---------------------+----------------+----------------+
//              state, which pop and drop swap    ends
//             +---------------- 64 -------------+------ 32 ------+------ 32 ------+
//   segment   |      address of its values      |     length     |  next segment  |
//             +---------------------------------+----------------+----------------+
//              begin                             link
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
//   2. pop, drop: several elements may have one group. An element changes the state by a compare-and-swap (relaxed, of the
//      8 bytes of the state alone), so each value is erased once. Nothing else depends on the state before the launch ends.
//   3. Lookups write nothing that another element reads, and no launch has lookups and updates. So they read a record
//      plainly, both words of it by one load.
// The end of a launch orders it before the next one.
//
// Why. A build writes values once, group by group, and a lookup copies runs; a node for each pair would cost a line
// for each. A batch that comes later touches its own groups alone. Lists of many short segments are made one segment each
// again by `relist`, when this pays (storage/groups/grouped_rows.py).
//
// A lookup at random is paid by the sector of 32 bytes. A record lies in one sector. So a count reads one sector for a
// key, and a first value, or all values of a short list, take three: the group's, the segment's and the one of the values.
// With an array for each word it would be five.
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

// The records of the layout above. Each moves by one load or store.
struct alignas(16) GroupRecord {
  u64 state, ends;
  WARPHASH_FN u32 values() const { return low_half(state); }
  WARPHASH_FN u32 erased() const { return high_half(state); }
  WARPHASH_FN u32 first_segment() const { return low_half(ends); }
  WARPHASH_FN u32 last_segment() const { return high_half(ends); }
};
struct alignas(16) SegmentRecord {
  u64 begin, link;
  WARPHASH_FN u32 length() const { return low_half(link); }
  WARPHASH_FN u32 next() const { return high_half(link); }
};
WARPHASH_FN GroupRecord* groups_of(const ValueLists& t) { return reinterpret_cast<GroupRecord*>(t.group_records); }
WARPHASH_FN SegmentRecord* segments_of(const ValueLists& t) {
  return reinterpret_cast<SegmentRecord*>(t.segment_records);
}

// The group of an element: one of no values without a group.
WARPHASH_FN GroupRecord record_of(const ValueLists& t, const ListBatch& b, u64 i) {
  return has_group(b, i) ? groups_of(t)[group_of(b, i)] : GroupRecord{};
}
// The state of the group of an element, which others may change meanwhile: 0 without a group.
WARPHASH_FN u64 state_of(const ValueLists& t, const ListBatch& b, u64 i) {
  return has_group(b, i) ? load_relaxed(&groups_of(t)[group_of(b, i)].state) : 0;
}

// A place in a list.
struct ListPlace {
  u32 segment;
  u64 at;     // of the segment's values
  u64 begin;  // address of these

  // The value with so many before it in the segments of a group.
  WARPHASH_FN static ListPlace of(const ValueLists& t, const GroupRecord& group, u64 before) {
    u32 number = group.first_segment();
    SegmentRecord segment = segments_of(t)[number];
    while (before >= segment.length()) {
      before -= segment.length();
      number = segment.next();
      segment = segments_of(t)[number];
    }
    return {number, before, segment.begin};
  }
  WARPHASH_FN const u8* row(const ValueLists& t) const {
    return in_global(reinterpret_cast<const u8*>(begin)) + at * t.row_bytes;
  }
};

// A task whose element begins at the record of its group.
struct OfGroups : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static const void* hint(const ValueLists& t, const ListBatch& b, u64 i) {
    return groups_of(t) + group_of(b, i);
  }
};

struct LinkSegments : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const u32 group = group_of(b, i), segment = static_cast<u32>(b.first_segment + i);
    const u32 length = reinterpret_cast<const u32*>(b.counts)[i];
    segments_of(t)[segment] = {b.values + reinterpret_cast<const u64*>(b.offsets)[i] * t.row_bytes, length};
    const GroupRecord held = groups_of(t)[group];
    if (held.values()) {
      u32 first = held.first_segment(), erased = held.erased();
      if (erased) {
        const ListPlace place = ListPlace::of(t, held, erased);
        first = place.segment, erased = static_cast<u32>(place.at);
      }
      u64& last = segments_of(t)[held.last_segment()].link;
      last = halves(low_half(last), segment);
      groups_of(t)[group] = {halves(held.values() + length, erased), halves(first, segment)};
    } else {
      groups_of(t)[group] = {length, halves(segment, segment)};
    }
    if (i == 0) *reinterpret_cast<ListTotals*>(b.totals) = {b.groups, b.first_segment + b.n};
    return false;
  }
};

struct FirstValue : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const GroupRecord group = record_of(t, b, i);
    if (b.out_flags) reinterpret_cast<u8*>(b.out_flags)[i] = group.values() != 0;
    if (!b.out_values) return false;
    const u8* const row =
        group.values() ? ListPlace::of(t, group, group.erased()).row(t) : reinterpret_cast<const u8*>(b.default_row);
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

struct PopValue : OfGroups {
  static constexpr bool kCounts = true;
  struct State {
    bool erased;
  };
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State& s) {
    u64 seen = state_of(t, b, i);
    while (low_half(seen)) {
      const u64 popped = halves(low_half(seen) - 1, high_half(seen) + 1);
      const u64 before = compare_exchange_word(&groups_of(t)[group_of(b, i)].state, seen, popped);
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
      const u64 before = compare_exchange_word(&groups_of(t)[group_of(b, i)].state, seen, 0ull);
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
    segments_of(t)[i] = {b.values + reinterpret_cast<const u64*>(b.offsets)[i] * t.row_bytes, count};
    groups_of(t)[i] = {count, halves(segment, segment)};
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

#define WARPHASH_LIST_ENTRIES                  \
  WARPHASH_ENTRY(link, warphash::LinkSegments) \
  WARPHASH_ENTRY(first, warphash::FirstValue)  \
  WARPHASH_ENTRY(count, warphash::CountValues) \
  WARPHASH_ENTRY(pop, warphash::PopValue)      \
  WARPHASH_ENTRY(drop, warphash::DropValues)   \
  WARPHASH_ENTRY(relist, warphash::Relist)     \
  WARPHASH_ENTRY(count_up, warphash::CountUp)  \
  WARPHASH_ENTRY(take_rows, warphash::TakeRowsOf)
