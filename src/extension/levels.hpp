// The instruction levels of an x86 processor beyond the baseline; CMakeLists.txt asks them of the machine that compiles, and
// module.cpp of the machine that runs.
#pragma once

namespace warphash_cpu {

#if defined(__x86_64__)
inline bool has_fast() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"); }
inline bool has_wide() {
  return has_fast() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
inline bool has_fast() { return false; }
inline bool has_wide() { return false; }
#endif

}  // namespace warphash_cpu
