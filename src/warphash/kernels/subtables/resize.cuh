// Makes one subtable twice or half as large. A kernel goes over its slots; the other subtables stay, or only receive
// pairs. Source: Dynamic Hash Tables on GPUs, section 5.3.
//
//   enlarge   slot j of bucket c goes to slot j of bucket 2c or 2c + 1, by the hash of its key
//   halve     the slots j of buckets 2c and 2c + 1 go to bucket c; pairs that find no slot there are listed
//
// A launch has a thread for each slot of the smaller copy. The old copy is at `source_lines`, of `source_buckets`
// buckets. The table has the new copy, whose locks and overflow filter are zero. The kernel writes the filter anew: it
// enters the keys whose first subtable is now another (subtables/lines.cuh).
//
// enlarge. No two old buckets share a new one, so no slot is written twice and nothing is locked. A pair goes to one of
// the two halves, and the other half has a tombstone in its place. So empty slots stay the last ones, and a bucket that
// was once full still tells a find so (core/slot.cuh).
//
// halve. If only one of the two slots j holds a key, the key goes to slot j. If both do, the key of bucket 2c goes
// there. The other key is the r-th of its kind in the bucket, and takes the r-th slot that neither bucket has filled;
// the lanes of a bucket vote on these numbers. If there is no such slot, the pair is a residual. `place`
// (subtables/insert.cuh) is launched behind halve, and inserts the residuals into the other subtables; the halved one
// is closed to it. A new bucket counts as once full if one of the two was, or if it has residuals. The paper inserts
// residuals in the same kernel. Here one warp in five has a residual, and all its lanes would wait for it: such a
// kernel took 1.4 to 2 ms, where both kernels now take a tenth (docs/performance/subtables.md).
//
// Erratum. Section 5.3 says of a halving that "it does require locking since there will be no thread conflict". The
// reason is one for "does not". halve takes no lock, and `place` takes those of the other subtables.
#pragma once
#include "subtables/insert.cuh"

namespace warphash {

// The subtable as it was.
template <class S>
struct OldLines {
  u64 base, buckets;
  WARPHASH_FN static OldLines of(const SubtableBatch& b) { return {b.source_lines, b.source_buckets}; }
  WARPHASH_FN const typename S::Item* line(u64 bucket) const {
    return reinterpret_cast<const typename S::Item*>(base) + bucket * S::kSlots;
  }
  WARPHASH_FN typename S::Word key(u64 bucket, u32 slot) const { return load_relaxed(&line(bucket)[slot].key); }
  WARPHASH_FN u8* value(const SubtableTable& t, u64 bucket, u32 slot) const {
    return pointer<u8>(base + buckets * S::kBucketBytes) + (bucket * S::kSlots + slot) * S::value_bytes(t);
  }
};

template <class D>
WARPHASH_FN void copy_value(const SubtableTable& t, u32 bucket, u32 slot, const u8* from) {
  using S = typename D::S;
  if constexpr (S::kValueBytes == kRow)
    copy_row(S::value_at(t, bucket, slot), from, t.value_bytes);
  else if constexpr (S::kValueBytes > 0) {
    using Value = typename D::Value::Word;
    *reinterpret_cast<Value*>(S::value_at(t, bucket, slot)) = *reinterpret_cast<const Value*>(from);
  }
}

template <class D>
struct Enlarge : Straight<SubtableTable, SubtableBatch> {
  using S = typename D::S;
  using Word = typename S::Word;
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State&) {
    const auto old = OldLines<S>::of(b);
    const u32 subtable = static_cast<u32>(b.subtable), slot = static_cast<u32>(i % S::kSlots);
    const u64 bucket = i / S::kSlots;
    const u32 halves = bucket_named(subtable, static_cast<u32>(2 * bucket));
    const Word key = old.key(bucket, slot);
    Word keys[2] = {key, key};  // both empty, or both erased
    if (S::holds_key(typename S::Item{key})) {
      const u32 goes_to = bucket_in(t, subtable, digest(t, key)) & 1;
      keys[0] = goes_to == 0 ? key : S::kTombstone;
      keys[1] = goes_to == 1 ? key : S::kTombstone;
      copy_value<D>(t, halves + goes_to, slot, old.value(t, bucket, slot));
      receive<S>(t, halves + goes_to, digest(t, key));
    }
    S::at(t, halves)[slot].key = keys[0];
    S::at(t, halves + 1)[slot].key = keys[1];
    return false;
  }
};

template <class D>
struct Halve : ListsLeftover {
  using Table = typename D::Table;
  using Batch = typename D::Batch;
  using S = typename D::S;
  static constexpr bool kProbes = false, kSuspends = false, kCounts = false;
  struct State {
    u32 residual;  // slot of the old copy, or kNowhere
  };
  WARPHASH_FN static const void* hint(const Table&, const Batch&, u64) { return nullptr; }
  // Elements beyond the last slot fill up a warp: all its lanes vote.
  WARPHASH_FN static bool start(const Table& t, const Batch& b, u64 i, State& s) {
    const auto old = OldLines<S>::of(b);
    const u32 slot = static_cast<u32>(i % S::kSlots), here = 1u << slot, below = here - 1;
    const u64 half = i / S::kSlots;
    const bool beyond = half >= old.buckets / 2;
    const u64 bucket = beyond ? 0 : 2 * half;
    const LineMasks first = masks_of<S>(old.line(bucket), slot), second = masks_of<S>(old.line(bucket + 1), slot);
    s.residual = kNowhere;
    if (beyond) return false;
    const u32 both = ~(first.vacant | second.vacant) & S::kAllSlots, neither = first.vacant & second.vacant;
    const u32 meet = bit_count(both), room = bit_count(neither);
    const u32 to = bucket_named(static_cast<u32>(b.subtable), static_cast<u32>(half));
    const auto move = [&](u64 from, u32 to_slot) {
      const typename S::Word key = old.key(from, slot);
      copy_value<D>(t, to, to_slot, old.value(t, from, slot));
      S::at(t, to)[to_slot].key = key;
      receive<S>(t, to, digest(t, key));
    };
    if (neither & here) {
      if (bit_count(neither & below) < meet) return false;  // another lane's pair comes here
      const bool once_full = meet > room || !((first.empty & second.empty) >> (S::kSlots - 1));
      S::at(t, to)[slot].key = once_full || !(first.empty & second.empty & here) ? S::kTombstone : S::kEmpty;
      return false;
    }
    move(bucket + ((first.vacant & here) != 0), slot);
    if (!(both & here)) return false;
    const u32 rank = bit_count(both & below);
    if (rank < room)
      move(bucket + 1, nth_bit(neither, rank));
    else
      s.residual = static_cast<u32>((bucket + 1) * S::kSlots + slot);
    return false;
  }
  WARPHASH_FN static void finish(const Table&, const Batch&, u64, State&, bool, Tally&) {}
  WARPHASH_FN static bool lists(int, const State& s) { return s.residual != kNowhere; }
  WARPHASH_FN static u32 entry(const State& s) { return s.residual; }

 private:
  WARPHASH_FN static u32 nth_bit(u32 mask, u32 n) {
    for (u32 r = 0; r < n; ++r) mask &= mask - 1;
    return first_bit(mask);
  }
};

}  // namespace warphash
