// The values of keys that repeat: each key is a group with a number, and each group has a run of values, or several.
//
//   needs      elements -> whether their groups are new, and how many segments `link` takes for each
//   name_new   numbers for the new groups of a batch, and their keys
//   link       a new run for each group of a batch, behind those that the group has
//   first      elements -> the first values of their groups, and which elements have one
//   count      elements -> how many values their groups have
//   emit       elements -> all values of their groups, and their keys as often, on a GPU (groups/gpu/emit.cuh)
//   emit_keys  the same on a CPU (groups/cpu/list_entries.cuh)
//   pop        erases the first value of the group of each element
//   drop       erases all values of the group of each element
//   relist     one run for each group; writes ListTotals as link does
//
// Layout. A run is values in a row, wherever they lie. The values of a batch lie group by group, so the batch has one
// run for each of its groups. The record of a group has the address of its run while the group has one. A group of
// several runs has a segment for each of them, and these are a list. Groups and segments have a record of 16 bytes
// each, aligned to 16:
//
//   byte      0           4                     8                                16
//             +---- 32 ---+-------- 32 ---------+--------------- 64 -------------+
//   group     |   values  | erased first values |             place              |
//             +-----------+---------------------+--------------------------------+
//              state, which pop and drop swap
//             +---------------- 64 -------------+------ 32 ------+------ 32 ------+
//   segment   |      address of its values      |     length     |  next segment  |
//             +---------------------------------+----------------+----------------+
//              begin                             link
//
//   bit       0                          31                         62  63
//             +------------ 31 ----------+------------ 31 ----------+-1-+-1-+
//   place     |       first segment      |       last segment       | 0 | 1 |      of a list
//             +--------------------------+--------------------------+---+---+
//             |                address of the run                       | 0 |      of one run
//             +---------------------------------------------------------+---+
//
//   group 6: 3 values, 0 erased -> [ g h i ]
//   group 7: 5 values, 1 erased -> segment 7 [ a b c ] -> segment 8 [ d ] -> segment 90 [ e f ]: b c d e f
//
// Bit 63 is 0 in every address: those of a process have at most 57 bits, on x86-64 with five levels of pages, and those
// of a GPU have fewer. The one run of a group has its erased values first: its length is values + erased. The number of
// the next segment of the last one means nothing: a list ends with the values of its group. A group without values has
// neither run nor list, whatever its place says.
//
// Protocol.
//   1. needs: a group without values takes no segment, a group of one run two, and a list one. A new group takes a
//      number. The host replaces these words by the sums of the words before each, so every element knows its number
//      and its segments, and nothing is atomic.
//   2. link: each group comes once in a launch. A group without values gets the run. A group of one run becomes a list:
//      of a segment for what the run still has, and of one for the new run. A list gets one segment: the last segment
//      gets its follower, the group its new end and count. First segments without values leave the list: otherwise a
//      key whose values come and go, as in a queue, would have an ever longer list. The thread of element 0 writes
//      ListTotals: a host that is interrupted behind the launch reads there what the lists hold.
//   3. pop, drop: several elements may have one group. An element changes the state by a compare-and-swap (relaxed, of
//      the 8 bytes of the state alone), so each value is erased once. Nothing else depends on the state before the
//      launch ends.
//   4. Lookups write nothing that another element reads, and no launch has lookups and updates. So they read a record
//      plainly, both words of it by one load.
// The end of a launch orders it before the next one. No group changes between `needs` and `link`.
//
// Why. A build writes values once, group by group, and a lookup copies runs; a node for each pair would cost a line for
// each. A batch that comes later touches its own groups alone. Lists of many short segments are made one run each again
// by `relist`, when this pays (storage/groups/grouped_rows.py).
//
// A lookup at random is paid by the sector of 32 bytes. A record lies in one sector. So a count reads one sector for a
// key, and a first value, or all values of a short run, take two: the group's, and the one of the values. In a list
// they take three, with the segment's. To count and then copy all values (groups/gpu/emit.cuh) reads the record once.
// With an array for each word of the records it would be one more for each record.
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

// Whether the place of a group is that of a list.
WARPHASH_FN bool is_list(u64 place) { return place >> 63; }

// The records of the layout above. Each moves by one load or store.
struct alignas(16) GroupRecord {
  u64 state, place;
  WARPHASH_FN u32 values() const { return low_half(state); }
  WARPHASH_FN u32 erased() const { return high_half(state); }
  WARPHASH_FN bool is_list() const { return warphash::is_list(place); }
  WARPHASH_FN u32 first_segment() const { return static_cast<u32>(place) & kSegmentMask; }
  WARPHASH_FN u32 last_segment() const { return static_cast<u32>(place >> kSegmentBits) & kSegmentMask; }
  // The place of a list.
  WARPHASH_FN static u64 list(u32 first, u32 last) {
    return 1ull << 63 | static_cast<u64>(last) << kSegmentBits | first;
  }
  // The address of the first value that a group of one run still has.
  WARPHASH_FN u64 begin(u64 row_bytes) const { return place + erased() * row_bytes; }

 private:
  static constexpr u32 kSegmentMask = (1u << kSegmentBits) - 1;
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

  // The value with so many before it in the segments of a list.
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
};

// The value of a group with so many before it that are not erased.
WARPHASH_FN const u8* value_of(const ValueLists& t, const GroupRecord& group, u64 before) {
  u64 begin = group.place, at = group.erased() + before;
  if (group.is_list()) {
    const ListPlace place = ListPlace::of(t, group, at);
    begin = place.begin, at = place.at;
  }
  return in_global(reinterpret_cast<const u8*>(begin)) + at * t.row_bytes;
}

// A task whose element begins at the record of its group.
struct OfGroups : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static const void* hint(const ValueLists& t, const ListBatch& b, u64 i) {
    return groups_of(t) + group_of(b, i);
  }
};

struct CountNeeds : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const GroupRecord group = record_of(t, b, i);
    const u32 segments = !group.values() ? 0 : group.is_list() ? 1 : 2;
    reinterpret_cast<u64*>(b.needs)[i] = halves(segments, !has_group(b, i));
    return false;
  }
};

struct NameNewGroups : Straight<ValueLists, ListBatch> {
  WARPHASH_FN static bool start(const ValueLists&, const ListBatch& b, u64 i, State&) {
    if (has_group(b, i)) return false;
    const u64 before = high_half(reinterpret_cast<const u64*>(b.needs)[i]);
    const u32 number = static_cast<u32>(b.groups + before);
    reinterpret_cast<u32*>(b.numbers)[i] = reinterpret_cast<u32*>(b.new_numbers)[before] = number;
    copy_row(reinterpret_cast<u8*>(b.out_keys) + before * b.key_bytes,
             reinterpret_cast<const u8*>(b.keys) + i * b.key_bytes, b.key_bytes);
    return false;
  }
};

struct LinkRuns : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const u32 group = group_of(b, i), length = reinterpret_cast<const u32*>(b.counts)[i];
    const u64 offset = b.offsets ? reinterpret_cast<const u64*>(b.offsets)[i] : i;
    const u64 begin = b.values + offset * t.row_bytes;
    const GroupRecord held = groups_of(t)[group];
    groups_of(t)[group] = held.values() ? linked(t, b, i, held, {begin, length}) : GroupRecord{length, begin};
    if (i == 0) *reinterpret_cast<ListTotals*>(b.totals) = {b.groups, b.segments};
    return false;
  }

 private:
  // The record of a group with values, behind which a run comes.
  WARPHASH_FN static GroupRecord linked(const ValueLists& t, const ListBatch& b, u64 i, const GroupRecord& held,
                                        const SegmentRecord& run) {
    u32 segment = static_cast<u32>(b.first_segment) + low_half(reinterpret_cast<const u64*>(b.needs)[i]);
    u32 first = segment, erased = 0;
    if (!held.is_list()) {
      segments_of(t)[first] = {held.begin(t.row_bytes), halves(held.values(), ++segment)};
    } else {
      first = held.first_segment(), erased = held.erased();
      if (erased) {
        const ListPlace place = ListPlace::of(t, held, erased);
        first = place.segment, erased = static_cast<u32>(place.at);
      }
      u64& last = segments_of(t)[held.last_segment()].link;
      last = halves(low_half(last), segment);
    }
    segments_of(t)[segment] = run;
    return {halves(held.values() + run.length(), erased), GroupRecord::list(first, segment)};
  }
};

struct FirstValue : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const GroupRecord group = record_of(t, b, i);
    if (b.out_flags) reinterpret_cast<u8*>(b.out_flags)[i] = group.values() != 0;
    if (!b.out_values) return false;
    const u8* const row = group.values() ? value_of(t, group, 0) : reinterpret_cast<const u8*>(b.default_row);
    copy_row(reinterpret_cast<u8*>(b.out_values) + i * t.row_bytes, row, t.row_bytes);
    return false;
  }
};

struct CountValues : OfGroups {
  WARPHASH_FN static bool start(const ValueLists& t, const ListBatch& b, u64 i, State&) {
    const GroupRecord group = record_of(t, b, i);
    reinterpret_cast<u32*>(b.out_counts)[i] = group.values();
    if (b.begins) reinterpret_cast<u64*>(b.begins)[i] = group.is_list() ? group.place : group.begin(t.row_bytes);
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
    const u64 begin = b.values + reinterpret_cast<const u64*>(b.offsets)[i] * t.row_bytes;
    groups_of(t)[i] = {reinterpret_cast<const u32*>(b.counts)[i], begin};
    if (i == 0) *reinterpret_cast<ListTotals*>(b.totals) = {b.n, 0};
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

#define WARPHASH_LIST_ENTRIES                       \
  WARPHASH_ENTRY(needs, warphash::CountNeeds)       \
  WARPHASH_ENTRY(name_new, warphash::NameNewGroups) \
  WARPHASH_ENTRY(link, warphash::LinkRuns)          \
  WARPHASH_ENTRY(first, warphash::FirstValue)       \
  WARPHASH_ENTRY(count, warphash::CountValues)      \
  WARPHASH_ENTRY(pop, warphash::PopValue)           \
  WARPHASH_ENTRY(drop, warphash::DropValues)        \
  WARPHASH_ENTRY(relist, warphash::Relist)          \
  WARPHASH_ENTRY(count_up, warphash::CountUp)       \
  WARPHASH_ENTRY(take_rows, warphash::TakeRowsOf)
