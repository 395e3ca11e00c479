// Whole operations of a single block, for batches of at most as many elements as it has threads. Their time is all
// latency.
//
//   update_block   settle, claim, place (core/insert.cuh) and combine (core/bulk.cuh), with a barrier where a kernel
//                  would end
//   erase_block    erase
//
// One launch does the work of up to six. The host reads the outcome from its own memory instead of asking for a copy.
// The report and the claims may hold anything at the start.
//
// The answer, if `answer` is an address: words 1 to 4 count displaced pairs, unplaced elements, changed and probes;
// then, released to the host, word 0 becomes `ticket`, which the host waits for.
//
// The host may go on before the answer is there, and the caller may change the keys then. So with `adopts`, pairs that
// find no slot are put with the displaced pairs: they are the table's, and the host places them later. No pair is ever
// adopted twice: of the elements with one key, only the one that claim left is unplaced, if no values are combined.
#pragma once
#include "buckets/insert.cuh"
#include "core/gpu/schedule.cuh"

namespace warphash {

WARPHASH_FN void begin_block(const BucketBatch& b) {
  u64* words = reinterpret_cast<u64*>(report_of(b));
  for (u64 w = thread_in_block(); w < sizeof(Report) / 8; w += threads_in_block()) words[w] = 0;
  if (u32* claims = pointer<u32>(b.claims))
    for (u64 c = thread_in_block(); c <= b.claim_mask; c += threads_in_block()) claims[c] = kNowhere;
  block_barrier();
}

WARPHASH_FN void end_block(const BucketBatch& b) {
  block_barrier();
  if (!b.answer || thread_in_block() >= 32) return;
  static_assert(kReportLines == 32, "a lane sums up a line");
  const CountLine& line = report_of(b)->counts[lane()];
  const u64 changed = warp_sum(line.changed), probes = warp_sum(line.probes);
  if (lane() > 0) return;
  u64* answer = pointer<u64>(b.answer);
  answer[1] = report_of(b)->displaced;
  answer[2] = report_of(b)->unplaced;
  answer[3] = changed;
  answer[4] = probes;
  release_to_host(answer, b.ticket);
}

// Makes displaced pairs of the unplaced elements, of which a thread has at most one.
template <class D>
WARPHASH_FN void adopt_unplaced(const BucketBatch& b) {
  using S = typename D::S;
  block_barrier();
  const u32 e = thread_in_block();
  if (e >= b.n) return;
  u8* flag = pointer<u8>(b.out_flags) + e;
  if (*flag != kUnplaced) return;
  const u64 place = fetch_add(&report_of(b)->displaced, 1ull);
  pointer<typename S::Pair>(b.displaced)[place] = S::Pair::make(key_at<S>(b, e), value_at<S>(b, e));
  atomic_add(&report_of(b)->unplaced, ~0ull);
  atomic_add(&count_line(b, e / 32).changed, 1ull);
  *flag = kChanged;
}

template <class D>
WARPHASH_FN void update_block(const BucketTable& t, const BucketBatch& batch) {
  BucketBatch b = batch;
  Report* report = report_of(b);
  const auto listed = [&b](u64 list, const u64* length) {  // the elements of the next step
    block_barrier();
    b.indices = list;
    b.count = reinterpret_cast<u64>(length);
    return *length > 0;
  };
  begin_block(b);
  bool left = true;
  if (b.claims) {
    if constexpr (D::kSettles) {
      for_each<Settle<D>>(t, b);
      left = listed(b.leftover, &report->leftover);
    }
    if (left) {
      for_each<Claim<D>>(t, b);
      listed(b.winners, &report->winners);
    }
  }
  if (left) for_each<Place<D>>(t, b);
  if (left && b.losers && listed(b.losers, &report->losers)) for_each<Combine<D>>(t, b);
  if constexpr (D::kMovesKeys)
    if (b.adopts) adopt_unplaced<D>(b);
  end_block(b);
}

template <class D>
WARPHASH_FN void erase_block(const BucketTable& t, const BucketBatch& b) {
  begin_block(b);
  for_each<Erase<D>>(t, b);
  end_block(b);
}

}  // namespace warphash
