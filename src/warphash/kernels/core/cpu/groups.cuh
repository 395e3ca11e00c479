// The bulk operations that the CPU engine has compiled, by name. A Group holds those of one design for one slot layout.
#pragma once

namespace warphash_cpu {

// Runs an operation over elements [begin, end) of a batch. The addresses of its table and its batch (core/abi.cuh) are
// untyped here: each operation takes structures of its own, and each instruction set compiles the headers into a namespace of its own.
using Run = void (*)(const void* table, const void* batch, unsigned long long begin, unsigned long long end);

struct Entry {
  const char* name;
  Run run;
  bool walks;  // has memory of its own for each range (kWalks in core/concepts.cuh), so a thread has one range
};

constexpr int kMostEntries = 24;

struct Group {
  int key_bytes;
  int value_bytes;  // -1: those that SubtableTable::value_bytes says
  int slots_per_bucket;
  Entry entries[kMostEntries];  // those behind the last have no name
};

struct Groups {
  const Group* first;
  int count;
};

}  // namespace warphash_cpu

// The entries of a library that was compiled for one group, after the extension was built (runtime/cpu.py).
extern "C" __attribute__((visibility("default")))
const warphash_cpu::Entry warphash_entries[warphash_cpu::kMostEntries];
