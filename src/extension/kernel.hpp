// A kernel that is loaded, and its launch. runtime/cuda/program.py is its user.
//
// A find of a small batch takes the device 2 us, so the host must not take much longer. A launch is up to four calls of
// the driver: the current context, a wait for another stream, the launch, an event. From Python, each call would convert
// its arguments and take the interpreter's lock anew. Here they are one call, which lets go of that lock once.
#pragma once
#include <algorithm>

#include "streams.hpp"

// `threads` and `most_blocks`: the most threads that a block of the kernel may have, and the most blocks of use.
class Kernel {
 public:
  Kernel(nb::object streams, Handle function, unsigned threads, unsigned most_blocks)
      : streams_(streams), function_(function), threads_(threads), most_blocks_(most_blocks) {}

  Handle function() const { return function_; }
  unsigned threads() const { return threads_; }
  const Streams& streams() const { return *nb::inst_ptr<Streams>(streams_); }

  // Launches lanes for at most `n` elements, at least one, over two structures that have the buffer protocol.
  Status run(nb::handle table, nb::handle batch, std::uint64_t n, nb::handle stream) {
    const Bytes of_table(table), of_batch(batch);
    return run(of_table.at(), of_batch.at(), n, streams().handle_of(stream));
  }

  // The same at addresses.
  Status run(void* table, void* batch, std::uint64_t n, Handle stream) {
    const unsigned threads = n >= threads_ ? threads_ : static_cast<unsigned>((n + 31) / 32 * 32);
    const std::uint64_t blocks = std::min<std::uint64_t>((n + threads - 1) / threads, most_blocks_);
    Streams* const streams = nb::inst_ptr<Streams>(streams_);
    const WithoutInterpreter without;
    return streams->launch(function_, static_cast<unsigned>(blocks), threads, table, batch, stream);
  }

 private:
  nb::object streams_;
  Handle function_;
  unsigned threads_, most_blocks_;
};
