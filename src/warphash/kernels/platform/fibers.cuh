// A grid on one CPU thread: every lane is a fiber, and a scheduler decides at random who goes on. Tests only.
//
// Layout. kResidentBlocks blocks run at once, each of kWarpsPerBlock warps of 32 lanes; the others start as these end.
// Bits tell who may run: one word of ready warps, and in each warp one word of ready lanes. Each lane has a stack of
// its own, so a change of lanes is one change of stack (six registers on x86-64, ucontext elsewhere). The memory that a
// block shares is one section of the binary, whose bytes are swapped when the scheduler goes to another block.
//
// Protocol. A lane runs until it
//   meets      at a warp's collective or a block's barrier, the lane waits until all have come. The lanes of a warp
//              must have come for one kind of collective, and the words that they left stay readable until the next but
//              one;
//   gives way  by chance, at a switch point, which stands before every access to memory that other lanes may change;
//   fails      the lane breaks a rule, or touches memory that is not there: the launch ends, with a message.
// No lane may run and some are left: a deadlock. No end after kMaxSwitchPoints: a livelock. Both are failures too.
//
// Why several blocks. With one, warps of different blocks would never meet in a bucket, and no test could show that a
// kernel shares memory between blocks. More than four found no more: the tables of a test are small, so their warps
// collide anyway.
//
// How a schedule is drawn. A seed gives, besides every later choice, the temper of a launch: how often lanes give way,
// whether the scheduler stays in one warp, and how often a warp falls asleep for long. Uniform choices alone keep all
// lanes abreast and hardly ever show what a lane does with an answer that has grown old.
//
// What this cannot show. Every access takes place at once and in program order, so orders that only a GPU's relaxed
// memory allows do not occur.
#pragma once
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/stack_switch.cuh"
#include "platform/types.cuh"

namespace warphash::emulation {

constexpr u32 kWarpLanes = 32;
constexpr u32 kWarpsPerBlock = 8;
constexpr u32 kBlockLanes = kWarpLanes * kWarpsPerBlock;
constexpr u32 kResidentBlocks = 4;
constexpr u32 kWarps = kResidentBlocks * kWarpsPerBlock;  // as many as a word has bits
constexpr u64 kStackBytes = 32 << 10;
constexpr u64 kStackMark = 0x5ca1ab1e0ddba11ull;  // at the far end of every stack
constexpr u64 kSharedBytes = 32 << 10;
constexpr u64 kBlockMemoryBytes = 96 << 10;
constexpr u64 kMaxSwitchPoints = 1ull << 25;
constexpr u32 kAllReady = ~0u;

using Body = void (*)(const void* table, const void* batch);
enum class Meeting : u32 { kBallot, kShuffle };

// What the lanes of a warp left at one meeting.
struct Round {
  u64 words[kWarpLanes];
  u32 nonzero;  // lanes whose word is not zero
};

struct Warp {
  u32 ready;    // lanes that may run and do not
  u32 arrived;  // lanes at the present meeting
  u32 round;    // meetings held
  Meeting kind;
  Round rounds[2];  // this one and the one before
};

struct Block {
  u64 index;
  u32 live;                   // lanes that have not ended
  u32 arrived;                // lanes at the barrier
  char shared[kSharedBytes];  // while another block is in the section
  char* stacks;
  alignas(16) char memory[kBlockMemoryBytes];  // shared, too, and always in its place (block_memory)
};

struct Grid {
  Body body;
  const void* table;
  const void* batch;
  u64 blocks, started, ended;
  bool downwards;  // blocks start from the last
  // ---- who runs
  u32 lane, warp, block;  // the lane that runs now; warps are numbered over all resident blocks
  u32 in_section;         // the block whose shared memory is in the section
  u32 ready, asleep;      // warps
  // ---- the temper of this launch: each is a mask, and the event happens where random bits under it are all zero
  u64 random;
  u32 give_way, leave_warp, fall_asleep;
  bool calm;  // seed 0: nobody gives way
  u64 switch_points;
  u64 lane_rounds[2];  // idle and busy lanes, over all steps (count_round)
  // ---- how it went
  bool failed, faulted;
  u64 fault_address;
  char message[512];
  // ---- memory
  Stack scheduler;
  Stack lanes[kResidentBlocks * kBlockLanes];
  Warp warps[kWarps];
  Block resident[kResidentBlocks];
};

inline Grid grid;

inline const char* name_of(Meeting kind) { return kind == Meeting::kBallot ? "ballot" : "shuffle"; }

extern "C" char __start_warphash_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_warphash_shared[] __attribute__((weak, visibility("hidden")));
inline u64 shared_bytes() { return static_cast<u64>(__stop_warphash_shared - __start_warphash_shared); }

// ---- chance
inline u32 draw() {
  u64& x = grid.random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return static_cast<u32>(x >> 24);
}
inline bool happens(u32 mask) { return (draw() & mask) == 0; }
inline u32 any_bit(u32 set) {
  const u32 by = grid.calm ? 0 : draw() & 31;
  const u32 turned = (set >> by) | (set << (-by & 31));
  return (static_cast<u32>(__builtin_ctz(turned)) + by) & 31;
}

// ---- ends
inline void set_ready(u32 warp, u32 lanes) {
  grid.warps[warp].ready |= lanes;
  grid.ready |= 1u << warp;
}

// Notes what went wrong, and with whom.
inline void report(const char* format, ...) {
  const int used =
      snprintf(grid.message, sizeof grid.message, "block %llu, warp %u, lane %u: ", grid.resident[grid.block].index,
               grid.warp % kWarpsPerBlock, grid.lane);
  va_list values;
  va_start(values, format);
  vsnprintf(grid.message + used, sizeof grid.message - static_cast<u64>(used), format, values);
  va_end(values);
  grid.failed = true;
}

inline void report_deadlock() {
  u32 met = 0, at_barrier = 0, ended = 0;
  for (const Warp& warp : grid.warps) met += warp.arrived;
  for (const Block& block : grid.resident) {
    at_barrier += block.arrived;
    if (block.live) ended += kBlockLanes - block.live;
  }
  report("deadlock: %u lanes wait for their warp, %u for their block, and %u lanes of these blocks have ended", met,
         at_barrier, ended);
}

// Ends the launch from inside a lane, whose frames are left as they are.
[[noreturn]] inline void abandon() {
  Stack abandoned;
  switch_stack(abandoned, grid.scheduler);
  __builtin_unreachable();
}

template <class... Values>
[[noreturn]] inline void fail(const char* format, Values... values) {
  report(format, values...);
  abandon();
}

// ---- changing lanes
inline void bring_shared_memory(u32 block) {
  if (block == grid.in_section) return;
  if (const u64 bytes = shared_bytes()) {
    memcpy(grid.resident[grid.in_section].shared, __start_warphash_shared, bytes);
    memcpy(__start_warphash_shared, grid.resident[block].shared, bytes);
  }
  grid.in_section = block;
}

// Chooses a ready lane, of which there is one, makes it the running one and returns its stack.
inline Stack& choose() {
  u32 awake = grid.ready & ~grid.asleep;
  if (!awake || (grid.asleep && happens(63))) {
    grid.asleep = 0;
    awake = grid.ready;
  }
  const bool stays = (awake >> grid.warp & 1) && (grid.calm || !happens(grid.leave_warp));
  const u32 warp = stays ? grid.warp : any_bit(awake);
  const u32 lane = any_bit(grid.warps[warp].ready);
  grid.warps[warp].ready &= ~(1u << lane);
  if (!grid.warps[warp].ready) grid.ready &= ~(1u << warp);
  grid.warp = warp, grid.lane = lane, grid.block = warp / kWarpsPerBlock;
  bring_shared_memory(grid.block);
  return grid.lanes[warp * kWarpLanes + lane];
}

// Lets another lane run; returns when the scheduler comes back to this one.
inline void rest() {
  Stack& mine = grid.lanes[grid.warp * kWarpLanes + grid.lane];
  if (!grid.ready) report_deadlock(), abandon();
  Stack& next = choose();
  if (&next != &mine) switch_stack(mine, next);
}

inline void switch_point() {
  if (++grid.switch_points > kMaxSwitchPoints) fail("livelock: %llu switch points passed", kMaxSwitchPoints);
  if (grid.calm || !happens(grid.give_way)) return;
  if (happens(grid.fall_asleep)) grid.asleep |= 1u << grid.warp;
  set_ready(grid.warp, 1u << grid.lane);
  rest();
}

// ---- meetings
// Who comes last is no more likely to go on first than the others.
inline void leave_last() {
  if (grid.calm) return;
  set_ready(grid.warp, 1u << grid.lane);
  rest();
}

// Leaves `word` and returns what all lanes of the warp left, when all have come.
inline const Round& meet_warp(Meeting kind, u64 word) {
  Warp& warp = grid.warps[grid.warp];
  if (warp.arrived && warp.kind != kind)
    fail("comes to a %s, where others of its warp wait in a %s", name_of(kind), name_of(warp.kind));
  warp.kind = kind;
  Round& round = warp.rounds[warp.round & 1];
  if (!warp.arrived) round.nonzero = 0;
  round.words[grid.lane] = word;
  round.nonzero |= static_cast<u32>(word != 0) << grid.lane;
  if (++warp.arrived < kWarpLanes) {
    rest();
  } else {
    warp.arrived = 0;
    ++warp.round;
    set_ready(grid.warp, kAllReady & ~(1u << grid.lane));
    leave_last();
  }
  return round;
}

inline void meet_block() {
  Block& block = grid.resident[grid.block];
  if (++block.arrived < kBlockLanes) return rest();
  block.arrived = 0;
  const u32 first = grid.block * kWarpsPerBlock;
  for (u32 w = first; w < first + kWarpsPerBlock; ++w)
    set_ready(w, w == grid.warp ? kAllReady & ~(1u << grid.lane) : kAllReady);
  leave_last();
}

// ---- lanes and blocks
inline void run_lane() {
  grid.body(grid.table, grid.batch);
  Block& block = grid.resident[grid.block];
  if (--block.live == 0) abandon();  // to the scheduler: another block may take its place
  rest();
}

inline void start_block(u32 place) {
  Block& block = grid.resident[place];
  block.index = grid.downwards ? grid.blocks - 1 - grid.started : grid.started;
  ++grid.started;
  block.live = kBlockLanes;
  if (!block.stacks) {
    void* memory = mmap(nullptr, kBlockLanes * kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return report("no memory for the stacks of a block");
    block.stacks = static_cast<char*>(memory);
  }
  for (u32 l = 0; l < kBlockLanes; ++l) {
    char* stack = block.stacks + l * kStackBytes;
    memcpy(stack, &kStackMark, sizeof kStackMark);
    prepare_stack(grid.lanes[place * kBlockLanes + l], stack, kStackBytes, run_lane);
  }
  memset(grid.in_section == place ? __start_warphash_shared : block.shared, 0xcd, shared_bytes());
  for (u32 w = place * kWarpsPerBlock; w < (place + 1) * kWarpsPerBlock; ++w) set_ready(w, kAllReady);
}

inline void end_block(u32 place) {
  for (u32 l = 0; l < kBlockLanes; ++l)
    if (memcmp(grid.resident[place].stacks + l * kStackBytes, &kStackMark, sizeof kStackMark) != 0)
      report("a lane needed more than %llu bytes of stack", kStackBytes);
  ++grid.ended;
}

inline void on_fault(int, siginfo_t* info, void*) {
  grid.faulted = true;
  grid.fault_address = reinterpret_cast<u64>(info->si_addr);
  fail("touches memory that is not there");
}

// Draws how this launch goes.
inline void set_temper(u64 seed) {
  u64 x = seed + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  grid.random = (x ^ (x >> 31)) | 1;
  grid.calm = seed == 0;
  constexpr u32 kGiveWay[] = {0, 1, 7, 31}, kLeaveWarp[] = {0, 3, 31, 255}, kFallAsleep[] = {1, 7, 31, ~0u};
  grid.give_way = kGiveWay[draw() & 3];
  grid.leave_warp = kLeaveWarp[draw() & 3];
  grid.fall_asleep = kFallAsleep[draw() & 3];
  grid.downwards = !grid.calm && (draw() & 1);
}

// Runs `body` in every lane of enough blocks for n elements; returns null, or what went wrong.
inline const char* launch(Body body, const void* table, const void* batch, u64 n, u64 seed) {
  if (shared_bytes() > kSharedBytes) return "the blocks share more than kSharedBytes (platform/fibers.cuh)";
  grid.body = body, grid.table = table, grid.batch = batch;
  grid.blocks = (n + kBlockLanes - 1) / kBlockLanes;
  grid.started = grid.ended = grid.switch_points = 0;
  grid.lane_rounds[0] = grid.lane_rounds[1] = 0;
  grid.lane = grid.warp = grid.block = grid.in_section = grid.ready = grid.asleep = 0;
  grid.failed = grid.faulted = false;
  for (Warp& warp : grid.warps) warp.ready = warp.arrived = 0;
  for (Block& block : grid.resident) block.live = block.arrived = 0;
  set_temper(seed);
  struct sigaction ours = {}, segv, bus;
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;  // the handler never returns
  sigaction(SIGSEGV, &ours, &segv);
  sigaction(SIGBUS, &ours, &bus);
  for (u32 place = 0; place < kResidentBlocks && grid.started < grid.blocks; ++place) start_block(place);
  while (!grid.failed && grid.ended < grid.blocks) {
    if (!grid.ready) {
      report_deadlock();
      break;
    }
    switch_stack(grid.scheduler, choose());
    if (grid.failed) break;
    end_block(grid.block);
    if (grid.started < grid.blocks) start_block(grid.block);
  }
  sigaction(SIGSEGV, &segv, nullptr);
  sigaction(SIGBUS, &bus, nullptr);
  return grid.failed ? grid.message : nullptr;
}

}  // namespace warphash::emulation
