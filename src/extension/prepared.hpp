// A kernel, and a table and a batch that stay where they are: a call sets some words of the batch, and launches the kernel.
// storage/quotient/one_launch.py is its user.
//
// Why. An update of 1,000 keys is one launch. From Python, to give the batch its words took as long as the launch.
//
// Its caller holds the lock of the table alone: the batch is changed.
#pragma once
#include <vector>

#include "kernel.hpp"

class Prepared {
 public:
  // `table`, `batch`: objects with the buffer protocol, whose memory does not move. `places`: offsets of the words of the
  // batch that a call sets, in bytes.
  Prepared(nb::object kernel, nb::object table, nb::object batch, nb::tuple places)
      : kernel_(kernel),
        held_{table, batch},
        table_(Bytes(table).at()),
        batch_(static_cast<std::uint64_t*>(Bytes(batch).at())) {
    for (const nb::handle place : places) places_.push_back(nb::cast<std::size_t>(place) / 8);
  }

  // run(n, stream, words...): launches lanes for at most `n` elements, with a word for each place. The driver's status.
  Status run(nb::args given) {
    if (given.size() != places_.size() + 2) throw nb::type_error("expected n, a stream, and a word for each place");
    Kernel& kernel = *nb::inst_ptr<Kernel>(kernel_);
    const auto n = nb::cast<std::uint64_t>(given[0]);
    const Handle stream = kernel.streams().handle_of(given[1]);
    for (std::size_t i = 0; i < places_.size(); ++i) batch_[places_[i]] = nb::cast<std::uint64_t>(given[i + 2]);
    return kernel.run(table_, batch_, n, stream);
  }

 private:
  nb::object kernel_, held_[2];
  void* table_;
  std::uint64_t* batch_;
  std::vector<std::size_t> places_;
};
