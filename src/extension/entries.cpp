// Compiles one design, or kernels that no design changes, for one instruction set. The build defines WARPHASH_DESIGN
// (the class), WARPHASH_DESIGN_HEADER, WARPHASH_GROUPS (the name of the function below), WARPHASH_LAYOUTS (a WARPHASH_GROUP
// for each number of slots that a bucket may have), WARPHASH_SLABS, WARPHASH_NODES or WARPHASH_SUBTABLES for designs with
// lists of slabs or of nodes of one key, or subtables, and renames the namespace `warphash`, so that the linker cannot take
// one instruction set's template for another's.
#include "entries.hpp"

#include "core/cpu/schedule.cuh"
#include WARPHASH_DESIGN_HEADER
#if defined(WARPHASH_SUBTABLES)
#include "subtables/entries.cuh"
#elif defined(WARPHASH_SLABS) || defined(WARPHASH_NODES)
#include "chains/entries.cuh"
#elif !defined(WARPHASH_PLAIN_ENTRIES)
#include "buckets/cpu/entries.cuh"
#endif

namespace {

using warphash::u32;
using warphash::u64;
using warphash_cpu::Group;

#define WARPHASH_LAYOUT(BYTES, WORD, VALUED, N) \
  {BYTES, VALUED ? BYTES : 0, N, {WARPHASH_ENTRIES(WARPHASH_DESIGN, WORD, VALUED, N)}},
#define WARPHASH_GROUP(N)           \
  WARPHASH_LAYOUT(4, u32, false, N) \
  WARPHASH_LAYOUT(4, u32, true, N)  \
  WARPHASH_LAYOUT(8, u64, false, N) \
  WARPHASH_LAYOUT(8, u64, true, N)

#define WARPHASH_LINES(BYTES, WORD, VALUE) \
  {BYTES, VALUE, 128 / BYTES, {WARPHASH_ENTRIES(WARPHASH_DESIGN, WORD, VALUE, 0)}},
#define WARPHASH_LINES_OF_WORDS(BYTES, WORD) \
  WARPHASH_LINES(BYTES, WORD, 0)             \
  WARPHASH_LINES(BYTES, WORD, 4) WARPHASH_LINES(BYTES, WORD, 8) WARPHASH_LINES(BYTES, WORD, -1)

const Group kGroups[] = {
#if defined(WARPHASH_PLAIN_ENTRIES)
    {0, 0, 0, {WARPHASH_PLAIN_ENTRIES}},
#elif defined(WARPHASH_SUBTABLES)
    WARPHASH_LINES_OF_WORDS(4, u32) WARPHASH_LINES_OF_WORDS(8, u64) WARPHASH_LINES(16, warphash::Wide<16>, -1)
        WARPHASH_LINES(32, warphash::Wide<32>, -1) WARPHASH_LINES(64, warphash::Wide<64>, -1)
            WARPHASH_LINES(128, warphash::Wide<128>, -1)
#elif defined(WARPHASH_NODES)
    WARPHASH_GROUP(2)
#elif defined(WARPHASH_SLABS)  // 128 bytes each
    WARPHASH_LAYOUT(4, u32, false, 32) WARPHASH_LAYOUT(4, u32, true, 16) WARPHASH_LAYOUT(8, u64, false, 16)
        WARPHASH_LAYOUT(8, u64, true, 8)
#else
    WARPHASH_LAYOUTS
#endif
};

}  // namespace

warphash_cpu::Groups WARPHASH_GROUPS() { return {kGroups, static_cast<int>(sizeof(kGroups) / sizeof(kGroups[0]))}; }
