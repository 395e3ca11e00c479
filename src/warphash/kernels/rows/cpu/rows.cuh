// The kernels on rows of a CPU: those of rows/rows.cuh, and the tasks that write stored rows ask for these rows ahead.
//
// Why. A stored row lies anywhere, so each one is a wait for memory, unless the rows of the next elements are on their
// way (core/cpu/schedule.cuh). A row of more than a line has its first line asked for; the processor fetches the others
// behind it.
#pragma once
#include "core/cpu/schedule.cuh"
#include "rows/rows.cuh"

namespace warphash {

// An element that was found and claims reads two lines.
struct ClaimAskingAhead : ClaimRows {
  WARPHASH_FN static const void* hint(const StoredRows& t, const RowBatch& b, u64 i) {
    if (b.claims_found && flagged(b, i)) prefetch(cell(b, home(b, fingerprint_of(b, i))));
    return ClaimRows::hint(t, b, i);
  }
};
template <>
struct TaskOnCpu<ClaimRows> {
  using type = ClaimAskingAhead;
};

// A task on rows that writes the stored row of each element that `kNeeds` names.
template <class Task, bool (*kNeeds)(const RowBatch&, u64)>
struct AskingAhead : Task {
  using Table = typename Task::Table;
  using Batch = typename Task::Batch;
  using typename Task::State;
  WARPHASH_FN static const void* hint(const StoredRows& t, const RowBatch& b, u64 i) {
    return kNeeds(b, i) ? stored_row(t, row_number(b, i)) : nullptr;
  }
};

template <>
struct TaskOnCpu<Scatter> {
  using type = AskingAhead<Scatter, flagged>;
};
template <>
struct TaskOnCpu<Overwrite> {
  using type = AskingAhead<Overwrite, changes_value>;
};
template <>
struct TaskOnCpu<Merge> {
  using type = AskingAhead<Merge, changes_value>;
};

}  // namespace warphash
