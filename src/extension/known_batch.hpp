// Batches in arrays of one library, type and device: what a verb has to know of them before it launches kernels.
// table/known_batches.py makes these, and says which batches they are for. What is not known goes the usual way of the verb,
// and nothing has changed then.
//
// No call changes these objects. So several threads share them.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>
#include <vector>

#include "streams.hpp"

namespace nb = nanobind;

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
      PyObject *const name = step.name.ptr(), *const self = at.ptr();
      PyObject* const next =
          step.is_called ? PyObject_VectorcallMethod(name, &self, 1, nullptr) : PyObject_GetAttr(self, name);
      at = nb::steal(next);
      if (!at.is_valid()) throw nb::python_error();
    }
    return at;
  }

  nb::object kind_;
  std::vector<Rule> rules_;
  Way address_;
};

// The arrays of a batch: those that the caller gives, and those of the answer.
//
// Why. To view an array, to compare it with what the table holds, and to make an array of the answer took Python 1 us for
// each.
class KnownBatch {
 public:
  // stream(): the handle of the stream on which arrays are ready, 0 for the legacy one; below 0 on another device. makers:
  // for each array of the answer, a function and what it is called with behind the shape, which is a plain tuple; or None
  // if nobody asks for this one. slack: bits that are 0 in the addresses of given arrays. fewer: a batch has fewer elements
  // than this.
  KnownBatch(nb::list given, nb::object stream, nb::list makers, std::uint64_t slack, std::uint64_t fewer)
      : stream_(stream), slack_(slack), fewer_(fewer) {
    for (const nb::handle known : given) given_.push_back(nb::cast<KnownArrays>(known));
    for (const nb::handle maker : makers) {
      std::vector<nb::object> call;
      if (!maker.is_none())
        for (const nb::handle part : nb::cast<nb::tuple>(maker)) call.push_back(nb::borrow(part));
      makers_.push_back(std::move(call));
    }
    if (given_.empty()) throw nb::value_error("expected an array that is given");
  }

  // (arrays of the answer…, number of elements, stream, addresses of given arrays…, addresses of the others…), where an
  // address is 0 for None. None for arrays that are not known, that differ in length, or that have not exactly one axis.
  nb::object see(nb::args arrays) const {
    if (arrays.size() != given_.size()) throw nb::type_error("expected as many arrays as are known");
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (!given_[i].are_like(arrays[i])) return nb::none();
    const nb::object shape = nb::handle(arrays[0]).attr("shape");
    if (!nb::isinstance<nb::tuple>(shape) || nb::len(shape) != 1) return nb::none();
    const auto n = nb::cast<std::uint64_t>(nb::borrow<nb::tuple>(shape)[0]);
    if (n == 0 || n >= fewer_) return nb::none();
    const std::size_t made = makers_.size();
    nb::object seen = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(2 * made + 2 + given_.size())));
    std::size_t at = made + 2;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (i && !nb::handle(arrays[i]).attr("shape").equal(shape)) return nb::none();
      const std::uint64_t address = address_or_none(given_[i], arrays[i]);
      if (!address || address & slack_) return nb::none();
      put(seen, at++, nb::int_(address));
    }
    const auto stream = nb::cast<std::int64_t>(stream_());
    if (stream < 0) return nb::none();
    put(seen, made, nb::int_(n));
    put(seen, made + 1, nb::int_(stream ? static_cast<Handle>(stream) : kLegacyStream));
    const nb::object plain = nb::make_tuple(n);  // PyTorch reads a torch.Size item by item, which takes 0.7 us more
    for (std::size_t i = 0; i < made; ++i) {
      const bool asked = !makers_[i].empty();
      nb::object array = asked ? made_by(makers_[i], plain) : nb::object(nb::none());
      put(seen, at++, nb::int_(asked ? given_[0].address(array) : std::uint64_t(0)));
      put(seen, i, std::move(array));
    }
    return seen;
  }

 private:
  // 0 for an array without memory. PyTorch raises RuntimeError for a tensor that it transforms.
  static std::uint64_t address_or_none(const KnownArrays& known, nb::handle array) {
    try {
      return known.address(array);
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_RuntimeError)) throw;
      return 0;
    }
  }
  // Calls the function at the front with a shape, and with what is behind the function.
  static nb::object made_by(const std::vector<nb::object>& call, const nb::object& shape) {
    std::vector<PyObject*> arguments{shape.ptr()};
    for (std::size_t i = 1; i < call.size(); ++i) arguments.push_back(call[i].ptr());
    PyObject* const array = PyObject_Vectorcall(call.front().ptr(), arguments.data(), arguments.size(), nullptr);
    if (!array) throw nb::python_error();
    return nb::steal(array);
  }
  static void put(const nb::object& tuple, std::size_t i, nb::object item) {
    if (PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), item.release().ptr())) throw nb::python_error();
  }

  std::vector<KnownArrays> given_;
  nb::object stream_;
  std::vector<std::vector<nb::object>> makers_;
  std::uint64_t slack_, fewer_;
};
