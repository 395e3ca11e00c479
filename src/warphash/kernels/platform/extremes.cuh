// Atomic minima and maxima of signed words, relaxed, on a GPU and on the emulated one.
//
// Why a header of its own. The words of the platform are a part of every program, and only one program needs these.
#pragma once
#include "platform/types.cuh"

namespace warphash {

#if defined(WARPHASH_EMULATED)
inline void atomic_min(i64* p, i64 x) {
  emulation::change(p, [&](i64 old) { return old < x ? old : x; });
}
inline void atomic_max(i64* p, i64 x) {
  emulation::change(p, [&](i64 old) { return old > x ? old : x; });
}
#else
WARPHASH_FN void atomic_min(i64* p, i64 x) { atomicMin(p, x); }
WARPHASH_FN void atomic_max(i64* p, i64 x) { atomicMax(p, x); }
#endif

}  // namespace warphash
