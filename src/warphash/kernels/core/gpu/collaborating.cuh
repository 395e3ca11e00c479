// Collaborative lanes: a warp puts elements that are not done into a pool, and takes up fresh ones; it goes on with the
// pool when there is an element for each of its lanes. So every step keeps all lanes busy.
// Source: Stadium Hashing, section III-C, Stash with collaborative lanes (clStash), Figures 11 and 12.
//
// Layout. Each warp has a pool of 32 jobs in the memory that its block shares:
//
//     job 0        job 1            job 31
//   +------------+------------+ - +------------+     a job is the state of an element under way, and its number;
//   | state    i | state    i |   | state    i |     jobs 0 to pooled - 1 are waiting, the others are free
//   +------------+------------+ - +------------+
//
// A job is whole words, aligned as its state. Of keys and values of 8 bytes, that of an insert has 48 bytes, and that of
// a find 64, so the pools of a block of 8 warps take 12 to 16 KiB. A state with a key of 128 bytes is larger, and its
// blocks have 2 warps. `pooled` is the same in all lanes. A warp has a stretch of the elements, whole rows of 32.
//
// Protocol of a warp. A round is one step of each lane that has a job; who is done writes its answer. Before each round:
//   fresh   If elements are left, and the jobs in hand and in the pool are no more than 32: the lanes with a job put it
//           into the pool, the lane of rank r (from 0) among them as job pooled + r. Then lane l takes up element
//           next + l.
//   pooled  Otherwise each lane without a job takes one from the end of the pool, the lane of rank r among them job
//           pooled - 1 - r. While elements are left, there is a job for each: with j jobs in hand, 32 - j lanes are
//           idle, and pooled > 32 - j.
// The warp ends when no element is left, no job is in hand, and the pool is empty. Counts and ranks come from one ballot
// (the binary reduction and the binary prefix sum of the paper).
//
// Memory order. Other lanes read the pool than wrote it, so a barrier of the warp stands before each access to it. In
// the table nothing changes: the steps are those of the task, one lane a job, whichever lane that is.
//
// Why. In the schedule of one lane for each element (core/gpu/schedule.cuh), a warp takes as many rounds as its unluckiest
// element. At a load factor of 0.8 an insert takes 5 steps in the mean, and the longest of 32 takes about 18. The price
// is the votes of each round and the way through the pool, so the plain schedule wins in a table that is mostly empty.
//
// Departures. The paper's pool holds pairs; ours holds the whole state of a search, so no hash is computed twice. The
// paper has the schedule for insertions; any task that finds its own way (kSteps) can have it. The paper does not say
// how what is left in the pool is done, nor how many warps there are: ours fill idle lanes to the end, and are as many
// as the device holds at once.
// Errata. Figure 12, line 25, stores at `accumulated - threadScan - 1`, which is less than 0 for an empty pool. It has to
// be `accumulated + threadScan - 1`, with the inclusive scan of line 24.
#pragma once
#include "core/gpu/schedule.cuh"

namespace warphash {

template <class Task>
struct Collaborating : Task {
  using Table = typename Task::Table;
  using Batch = typename Task::Batch;
  struct Job {
    typename Task::State state;
    u32 i;
  };
  static constexpr bool kWalks = true, kRefills = true;
  // So that a block shares less than the 48 KiB that it may have.
  static constexpr u32 kThreads = sizeof(Job) <= 64 ? kBlockThreads : sizeof(Job) <= 128 ? 128 : 64;

  WARPHASH_FN static void run(const Table& t, const Batch& b) {
    check_task<Task>();
    static_assert(kSteps<Task> && !Task::kSuspends && !kAllocates<Task>, "a round is one step, and nothing else");
    const u64 n = b.count ? *reinterpret_cast<const u64*>(b.count) : b.n;
    const u64 warp = thread_in_grid() / kWarpLanes, warps = threads_in_grid() / kWarpLanes;
    const u64 stretch = ((n + warps - 1) / warps + kWarpLanes - 1) / kWarpLanes * kWarpLanes;
    u64 next = warp * stretch;
    const u64 end = next + stretch < n ? next + stretch : n;
    Job* const pool = static_cast<Job*>(block_memory<block_threads(kThreads) * sizeof(Job)>()) +
                      thread_in_block() / kWarpLanes * kWarpLanes;
    u32 pooled = 0;
    Job job;
    bool busy = false;
    Tally tally;
    for (;;) {
      const u32 in_hand = ballot(busy);
      const u32 rank = bit_count((busy ? in_hand : ~in_hand) & ((1u << lane()) - 1));
      bool live = busy;  // the lane has a job that is not answered
      warp_barrier();
      if (next < end && bit_count(in_hand) + pooled <= kWarpLanes) {
        if (busy) pool[pooled + rank] = job;
        pooled += bit_count(in_hand);
        const u64 i = next + lane();
        next += kWarpLanes;
        live = i < end;
        job.i = static_cast<u32>(i);
        busy = live && Task::start(t, b, i, job.state);
      } else if (in_hand || pooled) {
        const u32 idle = kWarpLanes - bit_count(in_hand), taken = idle < pooled ? idle : pooled;
        if (!busy && rank < taken) {
          job = pool[pooled - 1 - rank];
          busy = live = true;
        }
        pooled -= taken;
      } else {
        break;
      }
      count_round(busy);
      if (busy) busy = !Task::step(t, b, job.state);
      const bool finished = live && !busy;
      if (finished) Task::finish(t, b, job.i, job.state, true, tally);
      if constexpr (Task::kLists > 0) enter_lists_of_warp<Task>(b, job.state, finished);
    }
    if constexpr (Task::kCounts) flush<Task>(b, tally);
  }
};

}  // namespace warphash
