// A find of a small batch: from the storage of a table to the launch. table/known_batches.py makes it, and says which batches
// it is for.
//
// Protocol. A KnownBatch has seen the keys, and made the arrays of the answer. The lock of the table calls `launch`, which
// reads where the table lies now, and launches the kernel. If the storage is not known, the table and the device are as they
// were, and the verb goes its usual way.
//
// Why. A find of 1,000 keys is one launch, which takes the driver 2 to 3 us. The functions of Python on the way to the
// launch took as long again.
//
// No call changes this object. So several threads share it.
#pragma once
#include <array>

#include "kernel.hpp"

// Words of a batch, by the place of each.
struct Places {
  std::size_t n, keys, out_values, out_flags, default_value, words;
};

class Find {
 public:
  // `storage`: the type of the storages that are known. `loaded_find`: given such a storage, answers the loaded kernel and
  // the table that it is given; None if a find has more to do. `places`: offsets of words in a batch, in bytes, and the
  // size of a batch.
  Find(nb::type_object storage, nb::callable loaded_find, nb::tuple places)
      : storage_(storage), loaded_find_(loaded_find) {
    std::size_t at = 0;
    for (std::size_t* place :
         {&places_.n, &places_.keys, &places_.out_values, &places_.out_flags, &places_.default_value, &places_.words})
      *place = nb::cast<std::size_t>(places[at++]) / 8;
    if (places_.words > kMostWords) throw nb::value_error("expected a batch of fewer words");
  }

  // The driver's status of the launch; -1 if this storage, or what it is doing, is not known. `seen` is what a KnownBatch
  // has seen of keys, with an array of values and one of flags in the answer. The caller holds the lock of the table.
  int launch(nb::handle storage, std::uint64_t absent, nb::tuple seen) const {
    if (Py_TYPE(storage.ptr()) != reinterpret_cast<PyTypeObject*>(storage_.ptr())) return kNotKnown;
    const nb::object loaded = loaded_find_(storage);
    if (loaded.is_none()) return kNotKnown;
    const nb::object kernel = loaded[0], table = loaded[1];
    Kernel& find = *nb::inst_ptr<Kernel>(kernel);
    const auto word = [&seen](std::size_t i) { return nb::cast<std::uint64_t>(seen[i]); };
    const auto stream = static_cast<Handle>(word(3));
    if (find.streams().captures(stream)) return kNotKnown;
    std::array<std::uint64_t, kMostWords> batch{};
    batch[places_.n] = word(2);
    batch[places_.keys] = word(4);
    batch[places_.out_values] = word(5);
    batch[places_.out_flags] = word(6);
    batch[places_.default_value] = absent;
    const Bytes of_table(table);
    return find.run(of_table.at(), batch.data(), word(2), stream);
  }

 private:
  static constexpr std::size_t kMostWords = 64;
  static constexpr int kNotKnown = -1;

  nb::type_object storage_;
  nb::callable loaded_find_;
  Places places_{};
};
