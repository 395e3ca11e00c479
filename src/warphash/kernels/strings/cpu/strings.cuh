// Numbers for strings of any length: each distinct string has a number of 31 bits, and tables keep the numbers. A CPU
// runs these kernels.
//
//   look_up     strings -> their numbers, kNoNumber for a string that has none
//   intern      the same, and a string that has none gets one
//   resolve     ends an `intern`: elements that met a string of another element take its number
//   move_slots  slots -> a larger index, without the slots of numbers that are free
//   rows_of     numbers -> where their strings are
//   copy_bytes  strings -> one after another
//   hashes      numbers -> the hashes of their strings
//
// Layout.
//
//   index     slot of 8 bytes  [ tag: 32 | pending: 1 | number + 1, or element: 31 ]     0: a vacant slot
//   strings   row of 16 bytes  [ address: 64 | length: 64 ]        one for each number
//   arena     the bytes, one string behind the other, without a zero or a length between them
//
//   The tag is the upper half of a hash of the string. Its first `bits` bits are the home of the string; a string lies
//   in its home or, linearly probed, behind it. So a move to a larger index goes through both indexes in order, and
//   needs no hash.
//
// Protocol of intern. The host has made room for the batch as if each of its strings were new: slots, rows and bytes.
//   1. Probe from home. A slot of the tag leads to a string: compare lengths and bytes in full. Equal: take the number.
//   2. A vacant slot: claim it by compare-and-swap (relaxed) with the tag and the number of the element, marked
//      pending. Others that meet the slot compare their string with that of the element, in the caller's memory. Equal:
//      they note the element.
//   3. After each group of elements, take numbers and bytes for the claims of the group, by two atomic additions
//      (relaxed). Copy the bytes, write the row, and store the number in the slot (release). A probe loads slots by an
//      acquire, so it reads a whole row. Without an arena, no bytes are copied: the row is that of the caller.
//   4. resolve: the elements that noted another one read its number.
// No slot is pending when the launch ends, so an interrupt between launches leaves a whole index. look_up is step 1 alone.
// In a large batch, a thread remembers numbers by the address of the string (`Memo`), and probes for the others.
//
// Nothing here depends on the hash but time: strings of one hash are told apart by their bytes.
//
// Why numbers. Every design stores words, so every design stores strings, by any verb. A key costs its bytes once, 16
// bytes of row, and 13 to 26 bytes of index. Slots with the whole hash would save the compare of one string in 2^(32 - bits)
// probes, and double the index.
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/schedule.cuh"
#include "strings/abi.cuh"

namespace warphash {

constexpr u32 kNoNumber = ~0u;
constexpr u64 kNullLength = ~0ull, kFreeLength = ~0ull - 1;
constexpr u64 kPending = 1ull << 31;
constexpr u32 kStringGroup = 32;  // elements whose cache misses overlap

WARPHASH_FN u64 load_bytes(const u8* p, u64 count) {
  u64 x = 0;
  __builtin_memcpy(&x, p, count);
  return x;
}
WARPHASH_FN u64 fold(u64 a, u64 b) { return (a * b) ^ multiply_high(a, b); }

// Word j of the six that a string of 8 to 48 bytes consists of. Words begin every 8 bytes, but none ends behind the string, so the
// last ones overlap. The same instructions read strings of all these lengths. A branch by the length would be
// mispredicted.
constexpr u64 kStringWords = 6, kLeastInWords = 8, kMostInWords = 8 * kStringWords;  // bytes
WARPHASH_FN u64 string_word(const u8* p, u64 length, u64 j) {
  const u64 last = length - 8;
  return load_bytes(p + (8 * j < last ? 8 * j : last), 8);
}

// A hash in the manner of wyhash: products of 128 bits, folded. With constants for secrets, it names the owners of strings
// in tables that are spread over ranks. So it is part of the format of their checkpoints, and never changes.
//
// Both factors of every product have a secret of the table in them: a word of its own, or the state, which began as one. So
// nobody who lacks the secrets can make strings of one hash:
//   - A factor of zero hides the other one. With a known constant in a factor, all strings with this constant as their word
//     would have one product, under every seed.
//   - A product does not tell its factors apart. With one secret in both, strings whose two words are exchanged, each with
//     the difference of the two constants, would have one product, under every seed. Of n blocks, 8^n strings would.
WARPHASH_FN u64 hash_of(const StringRow& s, const u64* secrets) {
  u64 state = secrets[5];
  if (s.length == kNullLength) return state;
  const u8* p = reinterpret_cast<const u8*>(s.address);
  if (s.length >= kLeastInWords) {
    const auto take = [&](const u8* at, u64 length) {
      const u64 x = fold(string_word(at, length, 0) ^ secrets[0], string_word(at, length, 1) ^ state);
      const u64 y = fold(string_word(at, length, 2) ^ secrets[1], string_word(at, length, 3) ^ state);
      const u64 z = fold(string_word(at, length, 4) ^ secrets[2], string_word(at, length, 5) ^ state);
      state = fold(x ^ secrets[3], y ^ secrets[4]) ^ z;
    };
    u64 left = s.length;
    for (; left > kMostInWords; left -= kMostInWords, p += kMostInWords) take(p, kMostInWords);
    if (s.length > kMostInWords)  // the last 48 bytes, some of them a second time
      take(p + left - kMostInWords, kMostInWords);
    else
      take(p, left);
    return fold(secrets[2] ^ s.length, state);
  }
  u64 a = 0, b = 0;
  if (s.length >= 4)
    a = load_bytes(p, 4), b = load_bytes(p + s.length - 4, 4);
  else if (s.length > 0)
    a = static_cast<u64>(p[0]) << 16 | static_cast<u64>(p[s.length >> 1]) << 8 | p[s.length - 1];
  return fold(secrets[2] ^ s.length, fold(a ^ secrets[0], b ^ state));
}

WARPHASH_FN bool same_string(const StringRow& a, const StringRow& b) {
  if (a.length != b.length) return false;
  if (a.length == kNullLength) return true;
  const u8 *p = reinterpret_cast<const u8*>(a.address), *q = reinterpret_cast<const u8*>(b.address);
  if (a.length < kLeastInWords || a.length > kMostInWords) return !__builtin_memcmp(p, q, a.length);
  u64 difference = 0;
  for (u64 j = 0; j < kStringWords; ++j) difference |= string_word(p, a.length, j) ^ string_word(q, a.length, j);
  return !difference;
}

WARPHASH_FN u64 load_acquire_slot(const u64* p) {
  const u64 slot = load_relaxed(p);
  acquire_fence();
  return slot;
}

WARPHASH_FN u64 home_of(const StringIndex& t, u64 tag) { return tag >> (32 - t.bits); }
WARPHASH_FN u64 number_in(u64 slot) { return (slot & (kPending - 1)) - 1; }

// The numbers of the last strings, by their addresses. The elements of a dictionary-encoded column have the addresses of
// the dictionary's strings, so each of these is probed for once, and not for each element. Strings that lie one behind the
// other, in the order of the elements, do without the memo, and so do small batches. Others give it up once there were
// more misses than hits by twice its lines.
class Memo {
  static constexpr u32 kLines = 8192, kSample = 64;
  static constexpr u64 kLeastElements = 1 << 14, kMostLength = ~0u;
  struct Line {
    u64 address;
    u32 length, number;
  };
  Line lines_[kLines];
  i32 credit_;  // of hits, less misses

  WARPHASH_FN Line& line(const StringRow& row) { return lines_[(row.address * 0x9fb21c651e98df25ull) >> 51]; }

 public:
  Memo(const StringRow* rows, u64 elements) : credit_(0) {
    if (elements < kLeastElements) return;
    for (u32 k = 1; k < kSample; ++k)
      if (rows[k].address < rows[k - 1].address) credit_ = 2 * kLines;
    if (in_use())
      for (Line& line : lines_) line = {0, 0, 0};
  }
  WARPHASH_FN bool in_use() const { return credit_ > 0; }
  WARPHASH_FN bool knows(const StringRow& row, u32& number) {
    const Line& seen = line(row);
    const bool known = row.address && seen.address == row.address && seen.length == row.length;
    if (known) number = seen.number;
    credit_ += known ? 1 : -1;
    return known;
  }
  WARPHASH_FN void note(const StringRow& row, u32 number) {
    if (row.length < kMostLength) line(row) = {row.address, static_cast<u32>(row.length), number};
  }
};

// The probes of a thread, for look_up and intern.
template <bool kInserts>
struct StringProbes {
  const StringIndex& t;
  u64* const slots;
  StringRow* const known;
  const StringRow* const rows;
  u32* const numbers;
  const u64 mask;
  Memo memo;
  u64 pending = 0;            // elements that noted another one
  u32 claims = 0;             // of the last group
  u64 claimed[kStringGroup];  // their slots
  u32 claimer[kStringGroup];  // and elements

  StringProbes(const StringIndex& table, const StringBatch& batch, u64 begin, u64 end)
      : t(table),
        slots(pointer<u64>(table.slots)),
        known(pointer<StringRow>(table.strings)),
        rows(pointer<const StringRow>(batch.rows)),
        numbers(pointer<u32>(batch.numbers)),
        mask((1ull << table.bits) - 1),
        memo(rows + begin, end - begin) {}

  // Looks up the strings [i, i + n).
  WARPHASH_FN void run(u64 i, u32 n) {
    u32 elements[kStringGroup], left = 0;
    if (memo.in_use()) {
      for (u32 k = 0; k < n; ++k)
        if (!memo.knows(rows[i + k], numbers[i + k])) elements[left++] = static_cast<u32>(i + k);
    } else {
      for (; left < n; ++left) elements[left] = static_cast<u32>(i + left);
    }
    probe(elements, left);
    if (memo.in_use())
      for (u32 k = 0; k < left; ++k)
        if (!kInserts || !(numbers[elements[k]] & kPending)) memo.note(rows[elements[k]], numbers[elements[k]]);
  }

 private:
  WARPHASH_FN void probe(const u32 (&elements)[kStringGroup], u32 n) {
    u64 tags[kStringGroup], at[kStringGroup];
    for (u32 k = 0; k < n; ++k) {
      tags[k] = (hash_of(rows[elements[k]], t.secrets) & t.hash_mask) >> 32;
      at[k] = home_of(t, tags[k]);
      prefetch(slots + at[k]);
    }
    u64 met[kStringGroup];
    for (u32 k = 0; k < n; ++k) {  // most probes end at their home or next to it
      met[k] = load_acquire_slot(slots + at[k]);
      if (!met[k] || met[k] >> 32 != tags[k] || met[k] & kPending)
        met[k] = 0;
      else
        prefetch(known + number_in(met[k]));
    }
    for (u32 k = 0; k < n; ++k)
      if (met[k]) prefetch(reinterpret_cast<const u8*>(known[number_in(met[k])].address));
    claims = 0;
    for (u32 k = 0; k < n; ++k) {
      const u32 i = elements[k];
      const bool found = met[k] && same_string(known[number_in(met[k])], rows[i]);
      numbers[i] = found ? static_cast<u32>(number_in(met[k])) : probe_from(at[k], tags[k], i);
    }
  }

  // The number of one string, kPending and another element, or kNoNumber: without a number, or claimed by the element.
  WARPHASH_FN u32 probe_from(u64 p, u64 tag, u32 element) {
    const StringRow& row = rows[element];
    while (true) {
      u64 slot = load_acquire_slot(slots + p);
      if (!slot) {
        if constexpr (!kInserts) return kNoNumber;
        slot = compare_exchange_word(slots + p, 0ull, tag << 32 | kPending | element);
        if (!slot) {
          claimed[claims] = p, claimer[claims] = element, ++claims;
          return kNoNumber;
        }
        acquire_fence();
      }
      if (slot >> 32 == tag) {
        const bool waits = kInserts && slot & kPending;
        const u64 number = waits ? slot & (kPending - 1) : number_in(slot);
        if (same_string(waits ? rows[number] : known[number], row)) {
          pending += waits;
          return static_cast<u32>(waits ? number | kPending : number);
        }
      }
      p = (p + 1) & mask;
    }
  }
};

struct LookUpStrings {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    const Table t = table;
    StringProbes<false> probes(t, batch, begin, end);
    for (u64 i = begin; i < end; i += kStringGroup)
      probes.run(i, static_cast<u32>(end - i < kStringGroup ? end - i : kStringGroup));
  }
};

struct InternStrings {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    const Table t = table;
    StringProbes<true> probes(t, batch, begin, end);
    StringCounters* const counters = pointer<StringCounters>(t.counters);
    const u32* const free_numbers = pointer<const u32>(t.free_numbers);
    for (u64 i = begin; i < end; i += kStringGroup) {
      probes.run(i, static_cast<u32>(end - i < kStringGroup ? end - i : kStringGroup));
      if (!probes.claims) continue;
      u64 bytes = 0;
      if (t.arena)
        for (u32 k = 0; k < probes.claims; ++k) bytes += stored_length(probes.rows[probes.claimer[k]]);
      u64 taken = fetch_add(&counters->taken, static_cast<u64>(probes.claims));
      u8* to = pointer<u8>(t.arena) + (bytes ? fetch_add(&counters->bytes, bytes) : 0);
      for (u32 k = 0; k < probes.claims; ++k, ++taken) {
        const StringRow& row = probes.rows[probes.claimer[k]];
        const u64 number = taken < t.free_count ? free_numbers[taken] : t.first + taken - t.free_count;
        if (t.arena) {
          const u64 length = stored_length(row);
          __builtin_memcpy(to, reinterpret_cast<const u8*>(row.address), length);
          probes.known[number] = {reinterpret_cast<u64>(to), row.length};
          to += length;
        } else {
          probes.known[number] = row;
        }
        probes.numbers[probes.claimer[k]] = static_cast<u32>(number);
        u64* const slot = probes.slots + probes.claimed[k];
        store_release(slot, (load_relaxed(slot) >> 32) << 32 | (number + 1));
      }
    }
    if (probes.pending) atomic_add(&counters->pending, probes.pending);
  }

 private:
  WARPHASH_FN static u64 stored_length(const StringRow& row) { return row.length == kNullLength ? 0 : row.length; }
};

struct ResolveStrings {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table&, const Batch& b, u64 begin, u64 end) {
    u32* const numbers = pointer<u32>(b.numbers);
    for (u64 i = begin; i < end; ++i)
      if (numbers[i] & kPending) numbers[i] = load_relaxed(numbers + (numbers[i] & (kPending - 1)));
  }
};

struct MoveSlots {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table& table, const Batch& batch, u64 begin, u64 end) {
    const Table t = table;
    const u64* const from = pointer<const u64>(batch.slots);
    u64* const to = pointer<u64>(t.slots);
    const StringRow* const known = pointer<const StringRow>(t.strings);
    const u64 mask = (1ull << t.bits) - 1;
    for (u64 i = begin; i < end; ++i) {
      const u64 slot = from[i];
      if (!slot || known[number_in(slot)].length == kFreeLength) continue;
      for (u64 p = home_of(t, slot >> 32); compare_exchange_word(to + p, 0ull, slot); p = (p + 1) & mask) {
      }
    }
  }
};

struct RowsOfStrings {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table& t, const Batch& b, u64 begin, u64 end) {
    const StringRow* const known = pointer<const StringRow>(t.strings);
    const u32* const numbers = pointer<const u32>(b.numbers);
    StringRow* const rows = pointer<StringRow>(b.rows);
    for (u64 i = begin; i < end; ++i) {
      if (i + kStringGroup < end) prefetch(known + numbers[i + kStringGroup]);
      rows[i] = known[numbers[i]];
    }
  }
};

struct HashesOfStrings {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table& t, const Batch& b, u64 begin, u64 end) {
    const StringRow* const known = pointer<const StringRow>(t.strings);
    const u32* const numbers = pointer<const u32>(b.numbers);
    for (u64 i = begin; i < end; ++i)
      pointer<u64>(b.hashes)[i] = numbers[i] == kNoNumber ? 0 : hash_of(known[numbers[i]], t.secrets);
  }
};

struct CopyBytes {
  using Table = StringIndex;
  using Batch = StringBatch;
  static constexpr bool kWalks = true;
  static void run(const Table&, const Batch& b, u64 begin, u64 end) {
    const StringRow* const rows = pointer<const StringRow>(b.rows);
    const u64* const offsets = pointer<const u64>(b.offsets);
    for (u64 i = begin; i < end; ++i) {
      if (i + kStringGroup < end) prefetch(reinterpret_cast<const u8*>(rows[i + kStringGroup].address));
      if (rows[i].length != kNullLength)
        __builtin_memcpy(pointer<u8>(b.bytes) + offsets[i], reinterpret_cast<const u8*>(rows[i].address),
                         rows[i].length);
    }
  }
};

}  // namespace warphash

#define WARPHASH_PLAIN_ENTRIES                      \
  WARPHASH_ENTRY(look_up, warphash::LookUpStrings)  \
  WARPHASH_ENTRY(intern, warphash::InternStrings)   \
  WARPHASH_ENTRY(resolve, warphash::ResolveStrings) \
  WARPHASH_ENTRY(move_slots, warphash::MoveSlots)   \
  WARPHASH_ENTRY(rows_of, warphash::RowsOfStrings)  \
  WARPHASH_ENTRY(hashes, warphash::HashesOfStrings) \
  WARPHASH_ENTRY(copy_bytes, warphash::CopyBytes)
