// Lookups of small batches in one kind of array: all that a verb does of them, but for the lock of the table.
// table/known_lookups.py makes them, and says which batches they are for.
//
// Protocol. `see` compares the caller's array with what is known, and makes the arrays of the answer. The lock of the table
// calls `launch`, which reads where the table lies now, and launches the kernel. Both leave what they do not know to the
// usual way of the verb. Then the table and the device are as they were.
//
// Why. A find of 1,000 keys is one launch, which takes the driver 2 to 3 us. Seven functions of Python, two views and
// a batch took as long again.
//
// No call changes this object. So several threads share it.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "kernel.hpp"

// The arrays of one library, type and device that a kernel can read. A way is the names of attributes, one after another,
// from an array on. A name that ends in "()" is that of a method, which is called. A rule is a way and what has to be found
// there. `address` is the way to the address.
class KnownArrays {
 public:
  KnownArrays(nb::type_object kind, nb::tuple rules, nb::tuple address) : kind_(kind), address_(way_of(address)) {
    for (const nb::handle rule : rules) rules_.push_back({way_of(nb::cast<nb::tuple>(rule[0])), rule[1]});
  }

  bool are_like(nb::handle array) const {
    if (Py_TYPE(array.ptr()) != reinterpret_cast<PyTypeObject*>(kind_.ptr())) return false;
    for (const Rule& rule : rules_) {
      const nb::object found = followed(rule.way, array);
      const int same = PyObject_RichCompareBool(found.ptr(), rule.expected.ptr(), Py_EQ);
      if (same < 0) throw nb::python_error();
      if (!same) return false;
    }
    return true;
  }

  std::uint64_t address(nb::handle array) const { return nb::cast<std::uint64_t>(followed(address_, array)); }

 private:
  struct Step {
    nb::object name;
    bool is_called;
  };
  using Way = std::vector<Step>;
  struct Rule {
    Way way;
    nb::object expected;
  };

  // As of the constructor.
  static Way way_of(nb::tuple names) {
    Way way;
    for (const nb::handle name : names) {
      std::string text = nb::cast<std::string>(name);
      const bool is_called = text.ends_with("()");
      if (is_called) text.resize(text.size() - 2);
      PyObject* interned = PyUnicode_InternFromString(text.c_str());
      if (!interned) throw nb::python_error();
      way.push_back({nb::steal(interned), is_called});
    }
    return way;
  }
  static nb::object followed(const Way& way, nb::handle from) {
    nb::object at = nb::borrow(from);
    for (const Step& step : way) {
      PyObject* const name = step.name.ptr();
      at = nb::steal(step.is_called ? PyObject_CallMethodNoArgs(at.ptr(), name) : PyObject_GetAttr(at.ptr(), name));
      if (!at.is_valid()) throw nb::python_error();
    }
    return at;
  }

  nb::object kind_;
  std::vector<Rule> rules_;
  Way address_;
};

// Words of a batch, by the place of each.
struct Places {
  std::size_t n, keys, out_values, out_flags, default_value, words;
};

class Lookups {
 public:
  // stream(): the handle of the stream on which arrays are ready; below 0 on another device. make_values(shape) and
  // make_found(shape): arrays of the answer; make_values is None if only presence is asked for. `slack`: bits that are 0
  // in an address of keys. `fewer`: batches have fewer keys than this. `storage`: the type of the storages that are known.
  // `no_fields`: what `find_fields` is while a find needs the structure of the table alone. `places`: offsets of words in
  // a batch, in bytes, and the size of a batch.
  Lookups(KnownArrays known, nb::object stream, nb::object make_values, nb::object make_found, std::uint64_t slack,
          std::uint64_t fewer, nb::type_object storage, nb::object no_fields, nb::tuple places)
      : known_(std::move(known)),
        stream_(stream),
        make_values_(make_values),
        make_found_(make_found),
        slack_(slack),
        fewer_(fewer),
        storage_(storage),
        no_fields_(no_fields) {
    std::size_t at = 0;
    for (std::size_t* place :
         {&places_.n, &places_.keys, &places_.out_values, &places_.out_flags, &places_.default_value, &places_.words})
      *place = nb::cast<std::size_t>(places[at++]) / 8;
    if (places_.words > kMostWords) throw nb::value_error("expected a batch of fewer words");
  }

  // (values, found, address of keys, number of keys, address of values, address of found, stream); None for arrays that
  // are not known.
  nb::object see(nb::handle keys) const {
    if (!known_.are_like(keys)) return nb::none();
    const nb::object shape = keys.attr("shape");
    if (!PyTuple_Check(shape.ptr()) || PyTuple_GET_SIZE(shape.ptr()) != 1) return nb::none();
    const auto n = nb::cast<std::uint64_t>(nb::handle(PyTuple_GET_ITEM(shape.ptr(), 0)));
    const std::uint64_t at = known_.address(keys);
    if (n == 0 || n >= fewer_ || (at & slack_)) return nb::none();
    const auto stream = nb::cast<std::int64_t>(stream_());
    if (stream < 0) return nb::none();
    nb::object values = nb::none();
    std::uint64_t values_at = 0;
    if (!make_values_.is_none()) {
      values = make_values_(shape);
      values_at = known_.address(values);
    }
    const nb::object found = make_found_(shape);
    return nb::make_tuple(values, found, at, n, values_at, known_.address(found), stream);
  }

  // The driver's status of the launch; -1 if this storage, or what it is doing, is not known. The caller holds the lock
  // of the table.
  int launch(nb::handle storage, std::uint64_t absent, nb::tuple seen) const {
    if (Py_TYPE(storage.ptr()) != reinterpret_cast<PyTypeObject*>(storage_.ptr())) return kNotKnown;
    const nb::object store = storage.attr("store");
    if (!store.attr("recovery").attr("step").is_none()) return kNotKnown;
    const nb::object array = store.attr("state").attr("array");
    if (!array.attr("find_fields").is(no_fields_)) return kNotKnown;
    const nb::object kernels = array.attr("program").attr("kernels");
    PyObject* const found = PyDict_GetItemString(kernels.ptr(), "find");
    if (!found) return kNotKnown;  // it is loaded by the first find
    const nb::object kernel = nb::borrow(found), table = array.attr("table");
    Kernel& find = *nb::inst_ptr<Kernel>(kernel);
    const auto word = [&seen](std::size_t i) { return nb::cast<std::uint64_t>(seen[i]); };
    const auto stream = static_cast<Handle>(word(6));
    if (find.streams().captures(stream)) return kNotKnown;
    std::array<std::uint64_t, kMostWords> batch{};
    batch[places_.n] = word(3);
    batch[places_.keys] = word(2);
    batch[places_.out_values] = word(4);
    batch[places_.out_flags] = word(5);
    batch[places_.default_value] = absent;
    const Bytes of_table(table);
    return find.run(of_table.at(), batch.data(), word(3), stream);
  }

 private:
  static constexpr std::size_t kMostWords = 64;
  static constexpr int kNotKnown = -1;

  KnownArrays known_;
  nb::object stream_, make_values_, make_found_;
  std::uint64_t slack_, fewer_;
  nb::object storage_, no_fields_;
  Places places_{};
};
