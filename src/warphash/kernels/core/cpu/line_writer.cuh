// Elements that a thread of a CPU writes to many ranges of memory at once, in no order of the ranges.
//
// The thread gathers the elements of a range until they fill a line of memory, and writes the line past the caches.
// Elements that are written one by one fetch the line that they overwrite.
#pragma once
#include <cstring>

#include "core/concepts.cuh"

namespace warphash {

constexpr u32 kLineBytes = 64;

// Copies bytes from an aligned place: whole lines of memory past the caches. Others may see them behind end_streams() only.
inline void stream_bytes(void* to, const void* from, u64 n) {
  u8* at = static_cast<u8*>(to);
  const u8* next = static_cast<const u8*>(from);
  const u64 before = -reinterpret_cast<u64>(at) % kLineBytes, first = before < n ? before : n;
  std::memcpy(at, next, first);
  for (at += first, next += first, n -= first; n >= kLineBytes; at += kLineBytes, next += kLineBytes, n -= kLineBytes) {
    alignas(kLineBytes) u8 line[kLineBytes];
    std::memcpy(line, next, kLineBytes);
    stream_line(at, line);
  }
  std::memcpy(at, next, n);
}

// A counter, or a place, of each range, 0 at first; none if there is no memory.
class Counters {
  u32* const of_;

 public:
  explicit Counters(u64 ranges) : of_(static_cast<u32*>(calloc(ranges, sizeof(u32)))) {}
  ~Counters() { free(of_); }
  Counters(const Counters&) = delete;
  WARPHASH_FN u32* begin() const { return of_; }
};

// Writes elements to places of `to`, which begins with a line. The places of a range follow one another, from `firsts`
// of the range on, and up to `ends` of the range, if these are given: nothing is written behind.
template <class T>
class LineWriter {
  static constexpr u32 kPerLine = kLineBytes / sizeof(T);
  T* const to_;
  const u32 *const firsts_, *const ends_;
  T* const held_;  // of each range, the line that its next place is in

 public:
  LineWriter(T* to, const u32* firsts, u64 ranges, const u32* ends = nullptr)
      : to_(to), firsts_(firsts), ends_(ends), held_(static_cast<T*>(aligned_alloc(kLineBytes, ranges * kLineBytes))) {}
  ~LineWriter() { free(held_); }
  LineWriter(const LineWriter&) = delete;
  bool has_memory() const { return held_; }

  WARPHASH_FN void put(u32 range, u32 place, const T& x) {
    T* const line = held_ + static_cast<u64>(range) * kPerLine;
    line[place % kPerLine] = x;
    if (place % kPerLine == kPerLine - 1) send(range, place + 1);
  }
  void flush(u32 range, u32 end) {
    if (firsts_[range] < end && end % kPerLine) send(range, end);
  }

 private:
  // The line that ends at place `end`, or the part of it that is this thread's. (Out of line: the loop around it needs
  // the registers.)
  [[gnu::noinline]] void send(u32 range, u32 end) {
    const T* const line = held_ + static_cast<u64>(range) * kPerLine;
    const u32 begin = (end - 1) / kPerLine * kPerLine, first = firsts_[range];
    if (ends_ && end > ends_[range]) return;
    if (first <= begin && end % kPerLine == 0) return stream_line(to_ + begin, line);
    for (u32 place = first > begin ? first : begin; place < end; ++place) to_[place] = line[place % kPerLine];
  }
};

}  // namespace warphash
