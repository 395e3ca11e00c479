// What the blocks of a grid share of the elements of crowded ranges (quotient/crowds.cuh, step 3).
//
// Protocol of an element that is not in the sample of its range.
//   1. Look for its key, in its home bucket and, if the filter says so, in its second one.
//   2. If the key is there: combine the value by an atomic operation. Or vacate its slot, if the key is to be erased
//      and is no guest. An atomic operation tells whether this element was the one that vacated the slot; otherwise
//      look again, as in quotient/gpu/erase.cuh.
//   3. A guest that is to be erased, and a key that is to be added, is listed for step 4. An absent key that is to be
//      erased needs nothing.
//
// No key comes to a bucket in this kernel. While keys are added, none leaves its slot, and lines are read through the
// nearest cache: a hot key is in all of them. While keys are erased, lines are read by relaxed loads.
//
// Memory order: relaxed. The end of the kernel publishes the lists.
#pragma once
#include "core/gpu/schedule.cuh"
#include "core/value.cuh"
#include "quotient/gpu/lines.cuh"
#include "quotient/range.cuh"

namespace warphash {

template <class D>
struct ApplyCrowds : OverQuotients {
  using S = typename D::S;
  using Word = typename S::Word;
  using Range = InRange<D, LinesByQuads>;
  static constexpr bool kWalks = true, kCounts = true;
  static constexpr u32 kThreads = kBlockThreads;
  enum Result : u8 { kThere, kErased, kListed };

  WARPHASH_FN static void run(const QuotientTable& t, const QuotientBatch& b) {
    const u32 chunks = chunks_of(b), size = static_cast<u32>(t.range_buckets);
    const u32 blocks = static_cast<u32>(threads_in_grid() / threads_in_block());
    Tally tally;
    for (u32 chunk = static_cast<u32>(thread_in_grid() / threads_in_block()); chunk < chunks; chunk += blocks) {
      const Crowd crowd = crowd_with(b, chunk);
      const Sampled sampled = Sampled::of(crowd.total, size * S::kSlots);
      const u32 start = pointer<const u32>(t.starts)[crowd.range], first = (chunk - crowd.first_chunk) * kChunk;
      const u32 end = crowd.total - first < kChunk ? crowd.total : first + kChunk;
      for (u32 k = first + thread_in_block(); k < end; k += threads_in_block()) {
        if (sampled.has(k, crowd.total)) continue;
        const Result result = apply(t, b, crowd.range * size, start + k);
        if (result == kListed) {
          pointer<u32>(b.rest)[start + fetch_add(counter_of(t, crowd.range), 1u)] = k;
        } else {
          tally.changed += result == kErased;
          if (b.out_flags) Range::flag_at(b, start + k, result == kErased ? kChanged : kPresent);
        }
      }
    }
    flush<ApplyCrowds>(b, tally);
  }

 private:
  // The element at a place of `brought`.
  WARPHASH_FN static Result apply(const QuotientTable& t, const QuotientBatch& b, u32 first_bucket, u32 place) {
    const Home<Word> home = D::home_of(t, Range::hash_at(b, place));
    u32 bucket = home.bucket;
    bool guest = false;
    for (;;) {
      Line* const line = line_at(t, bucket);
      u32 words[kLineWords];
      if (b.erases)
        read_shared<S>(line, words);
      else
        LinesByQuads::read<S::kReadWords>(line, words);
      if (const u32 hits = S::matches(words, home.remainder, guest)) {
        if (!b.erases) return combine_in(line, first_bit(hits), b, place);
        if (guest) return kListed;
        if (S::vacate(line->words, first_bit(hits))) return kErased;
        continue;
      }
      if (guest || !(words[0] & D::filter_bit(home.remainder))) return b.erases ? kThere : kListed;
      guest = true;
      bucket = D::second_of(t, first_bucket, home);
    }
  }
  WARPHASH_FN static Result combine_in(Line* line, u32 slot, const QuotientBatch& b, u32 place) {
    if constexpr (S::kHasValue)
      if (b.op != kKeep) {
        const auto item = pointer<const typename S::Brought>(b.brought)[place];
        combine(S::value(line->words, slot), S::value_of(item), b.op, b.kind);
      }
    return kThere;
  }
};

}  // namespace warphash
