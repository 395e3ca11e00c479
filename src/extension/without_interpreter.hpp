// The interpreter's lock, let go of while a thread works or waits.
#pragma once
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include <mutex>

// Releases the interpreter's lock, and takes it again. If the interpreter ends meanwhile, Python before 3.14 unwinds a
// daemon thread that asks for the lock, and C++ would end the process at the first function that does not throw. Such a
// thread sleeps until the process ends, as in Python 3.14.
class WithoutInterpreter {
 public:
  // held: a mutex that the thread holds beyond the end of this object, and gives up before it sleeps: others would wait
  // for the sleeper. None if it holds none.
  explicit WithoutInterpreter(std::recursive_mutex* held = nullptr) : held_(held), state_(PyEval_SaveThread()) {}
  ~WithoutInterpreter() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      if (held_) held_->unlock();
      for (;;) pause();
    }
  }
  WithoutInterpreter(const WithoutInterpreter&) = delete;
  WithoutInterpreter& operator=(const WithoutInterpreter&) = delete;

 private:
  std::recursive_mutex* const held_;
  PyThreadState* const state_;
};
