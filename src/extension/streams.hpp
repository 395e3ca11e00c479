// The order of operations on the streams of one GPU. runtime/cuda/engine.py says what the order is.
//
// The functions of the driver come by address: the process has loaded the driver already, and so the build needs no
// CUDA. LaunchConfig and LaunchAttribute have the layout of CUlaunchConfig and CUlaunchAttribute of cuda.h.
#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>

#include "without_interpreter.hpp"

namespace nb = nanobind;

using Status = int;             // of the driver; 0 is success
using Handle = std::uintptr_t;  // of a context, stream, event or function

struct LaunchAttribute {
  int id;
  int padding;
  unsigned char value[64];
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Handle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

constexpr int kProgrammaticStreamSerialization = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
constexpr Handle kLegacyStream = 1;

// Most lanes of a kernel that may begin while the kernel before ends. An early begin saves a microsecond. But a
// multiprocessor that is never idle between two kernels keeps the division of its memory into cache and shared memory.
// A large kernel that needs the cache loses more than that behind a kernel that needed shared memory.
constexpr std::uint64_t kMostEarlyThreads = 1 << 19;

// In the order in which engine.py gives the addresses.
struct Driver {
  Status (*get_context)(Handle* context);
  Status (*push_context)(Handle context);
  Status (*pop_context)(Handle* context);
  Status (*record_event)(Handle event, Handle stream);
  Status (*wait_event)(Handle stream, Handle event, unsigned flags);
  Status (*launch)(const LaunchConfig* config, Handle function, void** arguments, void** extra);
  Status (*is_capturing)(Handle stream, int* status);
  Status (*allocate)(Handle* memory, std::size_t bytes, Handle pool, Handle stream);
  Status (*free)(Handle memory, Handle stream);
  Status (*fill)(Handle target, unsigned char byte, std::size_t bytes, Handle stream);
  Status (*copy)(Handle target, Handle source, std::size_t bytes, Handle stream);
  Status (*wait_for_event)(Handle event);
};

// The memory of an object with the buffer protocol, such as a structure of ctypes.
class Bytes {
 public:
  explicit Bytes(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE)) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  void* at() const { return view_.buf; }

 private:
  Py_buffer view_;
};

// The lock of an engine. A thread that waits for it lets other threads run Python. Reentrant: a buffer may be collected,
// and freed, inside an operation.
class Turn {
 public:
  explicit Turn(std::recursive_mutex& mutex) : mutex_(mutex) {
    if (mutex_.try_lock()) return;
    const WithoutInterpreter without(&mutex_);
    mutex_.lock();
  }
  ~Turn() { mutex_.unlock(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::recursive_mutex& mutex_;
};

// The streams of one engine, of which each operation waits for the one before it.
class Streams {
 public:
  // `own` is the engine's stream; `event` stands behind the last operation; `overlaps`: a small kernel may begin while
  // the one before it ends; `refuse` raises the exception for a status.
  Streams(nb::tuple functions, Handle context, Handle own, Handle event, bool overlaps, nb::callable refuse)
      : context_(context), own_(own), last_(own), event_(event), overlaps_(overlaps), refuse_(refuse) {
    std::size_t at = 0;
    const auto take = [&]<class F>(F& function) {
      function = reinterpret_cast<F>(nb::cast<std::uintptr_t>(functions[at++]));
    };
    take(driver_.get_context), take(driver_.push_context), take(driver_.pop_context);
    take(driver_.record_event), take(driver_.wait_event), take(driver_.launch), take(driver_.is_capturing);
    take(driver_.allocate), take(driver_.free), take(driver_.fill), take(driver_.copy), take(driver_.wait_for_event);
    early_.id = kProgrammaticStreamSerialization;
    early_.value[0] = 1;
  }

  // call(function, *arguments): the answer of function(*arguments), with the engine's lock and context.
  nb::object call(nb::args given) {
    const Turn turn(mutex_);
    const Context context(*this);
    check(context);
    return answer(given, 0, nullptr);
  }

  // order(stream, function, *arguments): the answer of function(*arguments, handle), an operation on `stream`, behind
  // the operation before. None is the engine's own stream. An operation that a graph captures runs whenever the graph
  // does, so the operation has no place in the order: it waits for nothing here, and nothing waits for it.
  nb::object order(nb::args given) {
    if (given.size() == 0) throw nb::type_error("expected a stream");
    const Handle handle = handle_of(given[0]);
    const nb::object number = nb::int_(handle);
    const Turn turn(mutex_);
    const Context context(*this);
    check(context);
    if (captures(handle)) return answer(given, 1, number.ptr());
    if (!is_last(handle)) {
      const WithoutInterpreter without(&mutex_);  // the driver waits for room in its queue
      follow(handle);
    }
    const Close close{*this, handle};
    return answer(given, 1, number.ptr());
  }

  // What every batch asks of the driver besides its launches, each as one call: by way of order() and the bindings, each
  // would take Python four functions, and the interpreter's lock twice. All answer the driver's status.

  // The address of memory of a pool; less than 0, the status, if the driver refuses.
  std::int64_t allocate(nb::handle stream, std::size_t bytes, Handle pool) {
    Handle memory = 0;
    const Status status =
        in_order(stream, [&](Handle handle) { return driver_.allocate(&memory, bytes, pool, handle); });
    return status ? -static_cast<std::int64_t>(status) : static_cast<std::int64_t>(memory);
  }

  // Frees memory of a pool behind the last operation. It may come in the middle of another operation's turn, when the
  // collector runs there, and takes no turn on a stream itself.
  Status free(Handle memory) {
    const WithoutInterpreter without;
    const std::lock_guard lock(mutex_);
    const Context context(*this);
    return context.status() ? context.status() : driver_.free(memory, lasting());
  }

  Status fill(nb::handle stream, Handle target, unsigned char byte, std::size_t bytes) {
    return in_order(stream, [&](Handle handle) { return driver_.fill(target, byte, bytes, handle); });
  }

  // Copies, and records an event behind the copy, unless it is 0.
  Status copy(nb::handle stream, Handle target, Handle source, std::size_t bytes, Handle event) {
    return in_order(stream, [&](Handle handle) {
      const Status status = driver_.copy(target, source, bytes, handle);
      return status || !event ? status : driver_.record_event(event, handle);
    });
  }

  // Waits for an event. Other threads of Python go on, and operations of the engine, too.
  Status wait(Handle event) {
    const WithoutInterpreter without;
    return driver_.wait_for_event(event);
  }

  // join(stream): the number of a stream that is behind the last operation, also for a host that waits for the stream.
  // The next operation is behind all that the stream was given, by whomever.
  // order() leaves it to the driver that the legacy stream and the engine's own wait for each other. They do so once they
  // are given something. A host that waits for one of them gives nothing, so here the stream gets a wait.
  Handle join(nb::handle stream) {
    const Handle handle = handle_of(stream);
    const Turn turn(mutex_);
    const Context context(*this);
    check(context);
    if (captures(handle)) return handle;
    const WithoutInterpreter without(&mutex_);
    if (!is_last(handle)) follow(handle);
    if (may_vanish(handle)) {
      driver_.record_event(event_, handle);  // behind what another library gave the stream, too
    } else {
      driver_.record_event(event_, handle == own_ ? kLegacyStream : own_);
      driver_.wait_event(handle, event_, 0);
    }
    return handle;
  }

  // Whether a graph captures what `stream` is given.
  bool is_captured(nb::handle stream) const { return captures(handle_of(stream)); }

  // A stream is a number, or an object whose __cuda_stream__() answers (0, number).
  Handle handle_of(nb::handle stream) const {
    if (stream.is_none()) return own_;
    nb::object number;
    if (!nb::isinstance<nb::int_>(stream) && nb::hasattr(stream, "__cuda_stream__")) {
      number = nb::object(stream.attr("__cuda_stream__")()[1]);
    } else {
      number = nb::steal(PyNumber_Long(stream.ptr()));
    }
    if (!number.is_valid()) throw nb::python_error();
    const Handle handle = nb::cast<Handle>(number);
    return handle ? handle : kLegacyStream;
  }

  // The engine's own stream is captured by nobody, and CUDA does not capture the legacy one.
  bool captures(Handle stream) const {
    int status = 0;
    return may_vanish(stream) && driver_.is_capturing(stream, &status) == 0 && status != 0;
  }

  // Launches blocks x threads lanes of a kernel over two structures, which the driver copies, behind the operation before.
  // The caller has let go of the interpreter's lock. The driver's status.
  Status launch(Handle function, unsigned blocks, unsigned threads, void* table, void* batch, Handle stream) {
    void* arguments[] = {table, batch};
    const bool early = overlaps_ && static_cast<std::uint64_t>(blocks) * threads <= kMostEarlyThreads;
    const LaunchConfig config = {blocks, 1, 1, threads, 1, 1, 0, stream, &early_, early ? 1u : 0u};
    return turn(stream, [&](Handle) { return driver_.launch(&config, function, arguments, nullptr); });
  }

  // A stream behind the last operation that cannot be gone, for what is freed there. For functions of call().
  Handle lasting() {
    if (!may_vanish(last_)) return last_;
    driver_.wait_event(own_, event_, 0);
    return own_;
  }

 private:
  // The engine's context, current while this lives. It mostly is: all libraries share it.
  class Context {
   public:
    explicit Context(Streams& streams) : driver_(streams.driver_) {
      Handle current = 0;
      driver_.get_context(&current);
      if (current == streams.context_) return;
      status_ = driver_.push_context(streams.context_);
      entered_ = !status_;
    }
    ~Context() {
      Handle popped;
      if (entered_) driver_.pop_context(&popped);
    }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    Status status() const { return status_; }

   private:
    const Driver& driver_;
    Status status_ = 0;
    bool entered_ = false;
  };

  // operation(stream) behind the operation before, without the interpreter's lock; the status of what fails first.
  template <class Operation>
  Status in_order(nb::handle stream, Operation&& operation) {
    const Handle handle = handle_of(stream);
    const WithoutInterpreter without;
    return turn(handle, operation);
  }

  // The same for a caller that has let go of the interpreter's lock.
  template <class Operation>
  Status turn(Handle stream, Operation&& operation) {
    const std::lock_guard lock(mutex_);
    const Context context(*this);
    if (context.status()) return context.status();
    const bool captured = captures(stream);
    if (!captured && !is_last(stream)) follow(stream);
    const Status status = operation(stream);
    if (!captured && may_vanish(stream)) driver_.record_event(event_, stream);
    return status;
  }

  // The end of an operation: the event stands behind it, unless its stream is there for ever.
  struct Close {
    Streams& streams;
    Handle stream;
    ~Close() {
      if (!streams.may_vanish(stream)) return;
      const WithoutInterpreter without(&streams.mutex_);
      streams.driver_.record_event(streams.event_, stream);
    }
  };

  // Raises the exception for the status, if the context is not current.
  void check(const Context& context) const {
    if (!context.status()) return;
    refuse_(context.status());
    throw nb::python_error();
  }

  // Whether the last operation surely was on this stream. The number of a stream that is gone may be that of a new stream,
  // while the work of the old one is under way. The per-thread stream is another stream in every thread.
  bool is_last(Handle stream) const { return stream == last_ && !may_vanish(stream); }

  bool may_vanish(Handle stream) const { return stream != own_ && stream != kLegacyStream; }

  // Makes what a stream is given next wait for the last operation. The legacy stream and the engine's own do so by
  // themselves.
  void follow(Handle stream) {
    if (may_vanish(last_) || may_vanish(stream)) {
      if (!may_vanish(last_)) driver_.record_event(event_, last_);
      driver_.wait_event(stream, event_, 0);
    }
    last_ = stream;
  }

  // Calls the function at `first` with the arguments behind it, and one more if there is one.
  static nb::object answer(const nb::args& given, std::size_t first, PyObject* last) {
    constexpr std::size_t kMost = 16;
    const std::size_t count = given.size() - first;
    if (given.size() <= first || count >= kMost) throw nb::type_error("expected a function, and at most 14 arguments");
    PyObject* called[kMost];
    for (std::size_t i = 0; i < count; ++i) called[i] = nb::handle(given[first + i]).ptr();
    called[count] = last;
    PyObject* made = PyObject_Vectorcall(called[0], called + 1, count - 1 + (last ? 1 : 0), nullptr);
    if (!made) throw nb::python_error();
    return nb::steal(made);
  }

  Driver driver_;
  Handle context_, own_, last_, event_;
  bool overlaps_;
  nb::callable refuse_;
  LaunchAttribute early_{};
  std::recursive_mutex mutex_;
};
