// warphash.runtime._cpu: memory, and the compiled bulk operations over threads. runtime/cpu.py is its only user.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "core/cpu/groups.cuh"
#include "levels.hpp"
#include "memory.hpp"
#include "thread_pool.hpp"
#include "without_interpreter.hpp"

namespace nb = nanobind;
using warphash_cpu::Entry;
using warphash_cpu::FreedPages;
using warphash_cpu::Groups;
using warphash_cpu::Memory;
using warphash_cpu::ThreadPool;

// Of the levels that CMakeLists.txt has compiled. Units without a level of their own for AVX-512 are those of "fast" there.
#if defined(WARPHASH_LEVEL_fast)
#define WARPHASH_FAST_UNITS "units.inc"
#elif defined(WARPHASH_LEVEL_wide)
#define WARPHASH_FAST_UNITS "narrow_units.inc"
#endif
#if defined(WARPHASH_LEVEL_base)
#define WARPHASH_UNIT(NAME) Groups groups_##NAME##_base();
#include "units.inc"
#undef WARPHASH_UNIT
#endif
#if defined(WARPHASH_FAST_UNITS)
#define WARPHASH_UNIT(NAME) Groups groups_##NAME##_fast();
#include WARPHASH_FAST_UNITS
#undef WARPHASH_UNIT
#endif
#if defined(WARPHASH_LEVEL_wide)
#define WARPHASH_UNIT(NAME) Groups groups_##NAME##_wide();
#include "wide_units.inc"
#undef WARPHASH_UNIT
#endif

namespace {

// The levels that were compiled and that this processor has, the best one first, separated by spaces.
std::string levels() {
  std::string found;
#if defined(WARPHASH_LEVEL_wide)
  if (warphash_cpu::has_wide()) found += "wide ";
#endif
#if defined(WARPHASH_LEVEL_fast)
  if (warphash_cpu::has_fast()) found += "fast ";
#endif
#if defined(WARPHASH_LEVEL_base)
  found += "base ";
#endif
  return found.substr(0, found.empty() ? 0 : found.size() - 1);
}

// The options with which a level was compiled, but for the units that AVX-512 makes faster (generate.py).
std::string options(const std::string& level) {
  return level == "base" ? WARPHASH_OPTIONS_base : WARPHASH_OPTIONS_fast;
}

// The operations of a design for one of these levels; none if no unit has its name.
Groups groups_of(const std::string& design, [[maybe_unused]] const std::string& level) {
#if defined(WARPHASH_LEVEL_wide)
  if (level == "wide") {
#define WARPHASH_UNIT(NAME) \
  if (design == #NAME) return groups_##NAME##_wide();
#include "wide_units.inc"
#undef WARPHASH_UNIT
  }
#endif
#if defined(WARPHASH_FAST_UNITS)
  if (level != "base") {
#define WARPHASH_UNIT(NAME) \
  if (design == #NAME) return groups_##NAME##_fast();
#include WARPHASH_FAST_UNITS
#undef WARPHASH_UNIT
  }
#endif
#if defined(WARPHASH_LEVEL_base)
#define WARPHASH_UNIT(NAME) \
  if (design == #NAME) return groups_##NAME##_base();
#include "units.inc"
#undef WARPHASH_UNIT
#endif
  return {};
}

// The address of the operations of a design for a slot layout, to be handed back to entry(); 0 if the extension has none.
std::uintptr_t entries(const std::string& design, int key_bytes, int value_bytes, int slots_per_bucket,
                       const std::string& level) {
  const Groups groups = groups_of(design, level);
  for (int g = 0; g < groups.count; ++g) {
    const auto& group = groups.first[g];
    if (group.key_bytes == key_bytes && group.value_bytes == value_bytes && group.slots_per_bucket == slots_per_bucket)
      return reinterpret_cast<std::uintptr_t>(group.entries);
  }
  return 0;
}

// The address of one of these operations, to be handed back to run().
std::uintptr_t entry(std::uintptr_t entries, const std::string& name) {
  const Entry* const first = reinterpret_cast<const Entry*>(entries);
  for (const Entry* e = first; e != first + warphash_cpu::kMostEntries; ++e)
    if (e->name && name == e->name) return reinterpret_cast<std::uintptr_t>(e);
  throw nb::key_error(("no operation is compiled under the name " + name).c_str());
}

constexpr std::uint64_t kLeastElements = 1 << 13, kLeastBytes = 1 << 21;  // of a thread
// So many ranges that others do the work of a thread that is late or slow: the most are of kElementsOfRange at least. Two
// threads that write to one new huge page both clear it, so ranges of fewer elements cost what they save.
constexpr std::uint64_t kRangesOfThread = 4, kMostRangesOfThread = 32, kElementsOfRange = 1 << 18;

// Calls work(begin, end) over ranges of [0, n) on up to `threads` threads, each with at least `least`.
template <class Work>
void over_threads(std::uint64_t n, int threads, std::uint64_t least, std::uint64_t ranges_of_thread, const Work& work) {
  const std::uint64_t most = std::min(static_cast<std::uint64_t>(threads), n / least);
  ThreadPool::get().run(n, most <= 1 ? 1 : most * ranges_of_thread, most, work);
}

void run(std::uintptr_t address, std::uintptr_t table, std::uintptr_t batch, std::uintptr_t count, std::uint64_t n,
         int threads) {
  const WithoutInterpreter without;
  if (count) n = *reinterpret_cast<const std::uint64_t*>(count);
  if (n == 0) return;
  const Entry& entry = *reinterpret_cast<const Entry*>(address);
  const std::uint64_t ranges = n / kElementsOfRange / static_cast<std::uint64_t>(threads);
  over_threads(n, threads, kLeastElements, entry.walks ? 1 : std::clamp(ranges, kRangesOfThread, kMostRangesOfThread),
               [&](std::uint64_t begin, std::uint64_t end) {
                 entry.run(reinterpret_cast<const void*>(table), reinterpret_cast<const void*>(batch), begin, end);
               });
}

// A thread has one range: two threads that write to a new huge page at once would both clear it.
void fill(std::uintptr_t at, int byte, std::uint64_t bytes, int threads) {
  const WithoutInterpreter without;
  over_threads(bytes, threads, kLeastBytes, 1, [&](std::uint64_t begin, std::uint64_t end) {
    std::memset(reinterpret_cast<char*>(at) + begin, byte, end - begin);
  });
}

void copy(std::uintptr_t to, std::uintptr_t from, std::uint64_t bytes, int threads) {
  const WithoutInterpreter without;
  over_threads(bytes, threads, kLeastBytes, 1, [&](std::uint64_t begin, std::uint64_t end) {
    std::memcpy(reinterpret_cast<char*>(to) + begin, reinterpret_cast<const char*>(from) + begin, end - begin);
  });
}

}  // namespace

// By this symbol, runtime/thread_limits.py tells the extension from other libraries of its name.
extern "C" NB_EXPORT const char warphash_cpu_engine;
const char warphash_cpu_engine = 1;

NB_MODULE(_cpu, m) {
  nb::set_leak_warnings(false);  // a daemon thread that sleeps at the end keeps its objects
  ThreadPool::get();
  FreedPages::get();
  m.def("levels", &levels);
  m.def("options", &options);
  m.def("entries", &entries);
  m.def("entry", &entry);
  m.def("run", &run);
  m.def("fill", &fill);
  m.def("copy", &copy);
  m.def("keep_freed", [](std::uint64_t nbytes) { FreedPages::get().set_most(nbytes); });
  m.def("kept_bytes", [] { return FreedPages::get().kept(); });
  nb::class_<Memory>(m, "Memory")
      .def(nb::init<std::uint64_t>())
      .def_prop_ro("ptr", &Memory::ptr)
      .def_prop_ro("nbytes", &Memory::nbytes);
}
