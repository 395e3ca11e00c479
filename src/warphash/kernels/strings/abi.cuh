// What kernels on variable-length strings are given (core/abi.cuh, strings/cpu/strings.cuh).
#pragma once
#include "core/abi.cuh"

namespace warphash {

// Random words of a hash function of strings.
constexpr int kStringSecrets = 6;

// Where the bytes of a string are. kNullLength and kFreeLength are lengths of no string.
struct StringRow {
  u64 address;
  u64 length;  // bytes
};

// The numbers of strings, and their bytes.
struct StringIndex {
  u64 slots;                    // u64 array, zeros at first
  u64 bits;                     // log2 of its length, 1 to 32
  u64 strings;                  // StringRow of each number
  u64 arena;                    // where the bytes of new strings go; 0: these stay where they are
  u64 free_numbers;             // u32 array: numbers to give out first
  u64 free_count;               // and how many
  u64 first;                    // the number to give out behind these
  u64 counters;                 // StringCounters
  u64 hash_mask;                // of the 64 bits of a hash, those that count
  u64 secrets[kStringSecrets];  // random words of the hash function
};

// What interning has used. Kernels keep these counts, so that an interrupted host cannot lose them.
struct StringCounters {
  u64 taken;    // numbers given out
  u64 bytes;    // of the arena
  u64 pending;  // elements of the last `intern` that `resolve` has to finish
};

// Strings and their numbers.
struct StringBatch : Launch {
  u64 rows;     // StringRow per element
  u64 numbers;  // u32 per element
  u64 slots;    // move_slots: the slots to move
  u64 offsets;  // copy_bytes: u64 per element, where its bytes begin
  u64 bytes;    // copy_bytes: where the bytes go
  u64 hashes;   // hashes: u64 per element
};

}  // namespace warphash
