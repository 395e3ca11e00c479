// The members that a task, a design and the slots of a table must have, and the defaults of members that they may leave
// out. Schedules use those of a task, tasks use those of a design, and both use those of the slots.
//
//   slots    where a key may lie in a bucket, and the states of a slot (core/slot.cuh)
//   design   which buckets a key may live in, and how it gets there (designs/*.cuh)
//   task     what is done for an element of a batch (core/bulk.cuh, core/insert.cuh)
//
// Slots, a design and a task name the structures that they take: Table, and a design and a task also Batch
// (core/abi.cuh).
//
// A class that lacks a member is refused where it is used, by a message that names the member.
#pragma once
#include "core/abi.cuh"
#include "platform/platform.cuh"

namespace warphash {

struct Tally;
template <class S>
struct BucketView;
template <class S>
struct Probe;
enum class Placed;

// ---- optional members of a task

// A lane takes up elements one after another.
template <class Task>
constexpr bool kRefills = false;
template <class Task>
  requires(Task::kRefills)
constexpr bool kRefills<Task> = true;

// The task walks over the batch by itself, in its run().
template <class Task>
constexpr bool kWalks = false;
template <class Task>
  requires(Task::kWalks)
constexpr bool kWalks<Task> = true;

// It both adds and erases keys.
template <class Task>
constexpr bool kErases = false;
template <class Task>
  requires(Task::kErases)
constexpr bool kErases<Task> = true;

// It finds its way through memory by itself, a step at a time, and is shown no bucket. It counts what it probes.
template <class Task>
constexpr bool kSteps = false;
template <class Task>
  requires(Task::kSteps)
constexpr bool kSteps<Task> = true;

// It counts the keys that it adds or erases for each subtable.
template <class Task>
constexpr bool kCountsSubtables = false;
template <class Task>
  requires(Task::kCountsSubtables)
constexpr bool kCountsSubtables<Task> = true;

// It has to know which slot a key is in. Otherwise a key that is there is reported in slot 0.
template <class Task>
constexpr bool kSeesWhere = true;
template <class Task>
  requires(!Task::kSeesWhere)
constexpr bool kSeesWhere<Task> = false;

// It has to know all slots of a key.
template <class Task>
constexpr bool kSeesAll = false;
template <class Task>
  requires(Task::kSeesAll)
constexpr bool kSeesAll<Task> = true;

// Its elements take units of memory while they run. If wants_slab() is true of an element, the schedule gives it the
// address of a unit by supply(), or ~0u for none. supply() returns whether the element is done. Units come from a
// Task::Allocator. Each warp has an allocator, and all its lanes call its allocate(table, wanted).
template <class Task>
constexpr bool kAllocates = false;
template <class Task>
  requires(Task::kAllocates)
constexpr bool kAllocates<Task> = true;

struct NoAllocator {
  WARPHASH_FN explicit NoAllocator(u32) {}
};
template <class Task>
struct AllocatorChosen {
  using type = NoAllocator;
};
template <class Task>
  requires(kAllocates<Task>)
struct AllocatorChosen<Task> {
  using type = typename Task::Allocator;
};
template <class Task>
using AllocatorOf = typename AllocatorChosen<Task>::type;

// ---- what there must be
template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;
template <class A, class B>
concept Same = kSame<A, B>;

template <class A, class B>
concept Converts = requires(A a, void (&take)(B)) { take(a); };

template <class S>
concept IsSlots =
    requires(const typename S::Table& t, u32 bucket, const typename S::Item& item, const typename S::Word& key) {
      { S::kSlots + S::kDataSlots + S::kBucketBytes + S::kLookBytes } -> Same<int>;
      { S::kLinked || S::kFar || S::kSpread || S::kHasValue } -> Same<bool>;
      { S::is_empty(item) } -> Same<bool>;
      { S::is_vacant(item) } -> Same<bool>;
      { S::holds_key(item) } -> Same<bool>;
      { S::is_reserved(key) } -> Same<bool>;
      { S::at(t, bucket) } -> Same<typename S::Item*>;
      { S::empty() } -> Same<typename S::Item>;
      { S::next_in(item) } -> Same<u32>;
    };

// A design over slots of buckets or of lists. That over subtables has an insert of its own (subtables/insert.cuh).
template <class D>
concept IsDesign =
    IsSlots<typename D::S> &&
    requires(const typename D::Table& t, Probe<typename D::S>& probe, const Probe<typename D::S>& first,
             typename D::Placement& placement, const BucketView<typename D::S>& seen, typename D::S::Word value) {
      { D::kSettles && D::kMovesKeys && D::kReadsFirst } -> Same<bool>;
      { D::settle_slots(t) } -> Same<i32>;
      { D::region(t) } -> Same<i32>;
      { D::advance(t, probe, seen) } -> Same<bool>;
      { D::start(first, value, u32()) } -> Same<typename D::Placement>;
      { D::step(t, placement, seen) } -> Same<Placed>;
      placement.bucket;
      placement.hand;
    };

// A task that looks at buckets.
template <class Task>
concept IsProbing =
    IsSlots<typename Task::S> && requires(const typename Task::Table& t, const typename Task::Batch& b,
                                          typename Task::State& s, const BucketView<typename Task::S>& seen) {
      { Task::kReads && Task::kFrozen && Task::kVacancy } -> Same<bool>;
      { Task::kPartBytes + 0 } -> Same<int>;
      { Task::region(t) } -> Same<i32>;
      { Task::step(t, b, s, seen) } -> Same<bool>;
      { s.bucket() } -> Same<u32>;
      s.key();
    };

// A task that finds its own way: next() is what the next step of an element will read, or write.
template <class Task>
concept IsStepping = requires(const typename Task::Table& t, const typename Task::Batch& b, typename Task::State& s) {
  { Task::step(t, b, s) } -> Same<bool>;
  { Task::next(t, s) } -> Converts<const void*>;
};

// A task that does something else once a pair is displaced (core/report.cuh).
template <class Task>
concept IsSuspending = requires(typename Task::State& s) {
  { Task::suspend(s) } -> Same<bool>;
};

// A task that leaves entries in lists for another kernel.
template <class Task>
concept IsListing =
    requires(const typename Task::Batch& b, const typename Task::State& s, const typename Task::Entry& entry) {
      { Task::length(b, 0) } -> Same<u64*>;
      { Task::lists(0, s) } -> Same<bool>;
      { Task::entry(s) } -> Same<typename Task::Entry>;
      Task::enter(b, 0, u64(), entry);
    };

template <class Task>
concept IsAllocating =
    requires(const typename Task::Table& t, typename Task::State& s, typename Task::Allocator& allocator) {
      { Task::wants_slab(s) } -> Same<bool>;
      { Task::supply(t, s, u32()) } -> Same<bool>;
      { allocator.allocate(t, true) } -> Same<u32>;
    };

// The address that an element will read first: a CPU prefetches it.
template <class Task>
concept HasHint = requires(const typename Task::Table& t, const typename Task::Batch& b) {
  { Task::hint(t, b, u64()) } -> Converts<const void*>;
};

template <class Task>
concept IsTask =
    requires(const typename Task::Table& t, const typename Task::Batch& b, typename Task::State& s, Tally& tally) {
      { Task::kProbes || Task::kSuspends || Task::kCounts } -> Same<bool>;
      { Task::kLists + 0 } -> Same<int>;
      { Task::start(t, b, u64(), s) } -> Same<bool>;
      Task::finish(t, b, u64(), s, true, tally);
    };

// Refuses a task that lacks a member that its own constants ask for. (One assertion each: of a disjunction of concepts,
// compilers do not tell which part is missing.)
template <class Task>
WARPHASH_FN constexpr void check_task() {
  static_assert(IsTask<Task>);
  if constexpr (Task::kProbes)
    static_assert(IsProbing<Task>);
  else if constexpr (kSteps<Task>)
    static_assert(IsStepping<Task>);
  else
    static_assert(HasHint<Task>);
  if constexpr (Task::kSuspends) static_assert(IsSuspending<Task>);
  if constexpr (Task::kLists > 0) static_assert(IsListing<Task>);
  if constexpr (kAllocates<Task>) static_assert(IsAllocating<Task>);
}

}  // namespace warphash
