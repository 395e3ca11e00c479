// The answers of a find of a CPU: values and flags, which a large batch gets past the caches.
//
// Answers of a large batch are held in the cache of the thread until they are final, at most kMost of them in a row. Then
// whole lines of memory are written. An answer that is written through the caches has its line read first, and sixteen
// threads read all that the memory gives (docs/performance/cpu.md).
#pragma once
#include "core/bulk.cuh"
#include "core/cpu/line_writer.cuh"

namespace warphash {

// Answers of elements in a row, from the first of a thread on. kHasValues: there are values.
template <class Value, bool kHasValues>
class HeldAnswers {
  static constexpr u64 kMost = 4096;
  const u64 to_values_, to_flags_;  // addresses of the caller's; 0 for none
  const bool holds_;
  u64 first_ = 0;       // element that is held
  u64 values_, flags_;  // addresses of the answer of element 0, were there one
  alignas(kLineBytes) Value held_values_[kHasValues ? kMost : 1];
  alignas(kLineBytes) u8 held_flags_[kMost];

 public:
  HeldAnswers(const Batch& b, bool is_far)
      : to_values_(b.out_values),
        to_flags_(b.out_flags),
        holds_(is_far && b.n * sizeof(Value) > kNearBytes),
        values_(b.out_values),
        flags_(b.out_flags) {}

  WARPHASH_FN void begin(u64 first) {
    if (!holds_) return;
    first_ = first;
    values_ = reinterpret_cast<u64>(held_values_) - first * sizeof(Value);
    if (to_flags_) flags_ = reinterpret_cast<u64>(held_flags_) - first;
  }
  // Whether there is no room for the answers of elements up to `end`: the others must become final, and be sent.
  WARPHASH_FN bool is_full(u64 end) const { return holds_ && end - first_ > kMost; }
  // All answers of elements before `end` are final.
  WARPHASH_FN void send(u64 end) {
    if (holds_) send_held(end);
  }
  WARPHASH_FN u64 value_at(u64 element) const { return values_ + element * sizeof(Value); }
  WARPHASH_FN u64 flag_at(u64 element) const { return flags_ ? flags_ + element : 0; }
  WARPHASH_FN void put_value(u64 element, Value value) const { store_once(pointer<Value>(value_at(element)), value); }
  WARPHASH_FN void put_flag(u64 element, bool found) const {
    if (to_flags_) store_once(pointer<u8>(flags_ + element), static_cast<u8>(found));
  }

 private:
  [[gnu::noinline]] void send_held(u64 end) {
    const u64 n = end - first_;
    if constexpr (kHasValues)
      stream_bytes(pointer<u8>(to_values_ + first_ * sizeof(Value)), held_values_, n * sizeof(Value));
    if (to_flags_) stream_bytes(pointer<u8>(to_flags_ + first_), held_flags_, n);
    end_streams();
    begin(end);
  }
};

}  // namespace warphash
