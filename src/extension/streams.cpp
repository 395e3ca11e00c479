// warphash.runtime.cuda._streams: what a call on a GPU needs compiled. runtime/cuda/engine.py and program.py make these.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "find.hpp"
#include "known_batch.hpp"
#include "prepared.hpp"

NB_MODULE(_streams, m) {
  nb::set_leak_warnings(false);  // an engine lives as long as its process
  nb::class_<Streams>(m, "Streams")
      .def(nb::init<nb::tuple, Handle, Handle, Handle, bool, nb::callable>())
      .def("call", &Streams::call)
      .def("order", &Streams::order)
      .def("allocate", &Streams::allocate, nb::arg().none(), nb::arg(), nb::arg())
      .def("free", &Streams::free)
      .def("fill", &Streams::fill, nb::arg().none(), nb::arg(), nb::arg(), nb::arg())
      .def("copy", &Streams::copy, nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg())
      .def("wait", &Streams::wait)
      .def("join", &Streams::join, nb::arg().none())
      .def("is_captured", &Streams::is_captured, nb::arg().none())
      .def("lasting", &Streams::lasting);
  nb::class_<Kernel>(m, "Kernel")
      .def(nb::init<nb::object, Handle, unsigned, unsigned>())
      .def_prop_ro("function", &Kernel::function)
      .def_prop_ro("threads", &Kernel::threads)
      .def("run", nb::overload_cast<nb::handle, nb::handle, std::uint64_t, nb::handle>(&Kernel::run), nb::arg(),
           nb::arg(), nb::arg(), nb::arg().none());
  nb::class_<Prepared>(m, "Prepared")
      .def(nb::init<nb::object, nb::object, nb::object, nb::tuple>())
      .def("run", &Prepared::run);
  nb::class_<KnownArrays>(m, "KnownArrays").def(nb::init<nb::type_object, nb::tuple, nb::tuple>());
  nb::class_<KnownBatch>(m, "KnownBatch")
      .def(nb::init<nb::list, nb::object, nb::list, std::uint64_t, std::uint64_t>())
      .def("see", &KnownBatch::see);
  nb::class_<Find>(m, "Find").def(nb::init<nb::type_object, nb::callable, nb::tuple>()).def("launch", &Find::launch);
}
