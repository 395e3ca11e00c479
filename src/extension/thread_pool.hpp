// Threads that are kept from call to call, and share the ranges of a call with the thread that makes it.
//
// Protocol. All steps but the work itself hold the pool's mutex.
//   1. A call puts its job, which lies on the stack of the caller, at the end of a list, with a seat for each worker
//      that it may have, and wakes as many workers.
//   2. A worker takes a seat of the first job. The caller and the workers of a job take its ranges until none is left.
//      A job without a free seat or a free range goes off the list.
//   3. The caller waits until the ranges that workers took are done, and returns.
// So a call waits for nobody who has not begun: if the workers are busy with other calls, are slow to wake, or could
// not be started, the caller takes all ranges. There are more ranges than threads, so a slow thread takes fewer.
//
// Workers. The pool starts workers when a call first asks for so many. Python threads that call at once share them.
// Workers block all signals, so a signal interrupts the threads of the program. Workers keep the processor affinity of
// the thread whose call started them.
//
// Fork. A child has none of the workers, so its pool is made again, whatever state the parent's pool was in. Workers
// without work end before a fork, and the next call starts others. The process that is forked then has the threads of
// the program alone; Python 3.12 and later warn if there are more.
//
// Exit. The pool is never destroyed, because a daemon thread may be in the middle of a call. Its workers sleep until
// the process ends.
//
// Why. With two threads that are started for each call, a find of 20,000 / 40,000 keys takes 113 / 188 us, with the pool
// 91 / 162 (docs/performance/cpu.md).
#pragma once
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace warphash_cpu {

class ThreadPool {
 public:
  // The pool of this process. The first call must come before any that could run beside a fork.
  static ThreadPool& get() {
    static ThreadPool* const pool = [] {
      pthread_atfork([] { get().end_idle_workers(); }, nullptr, [] { new (&get()) ThreadPool; });
      return new ThreadPool;
    }();
    return *pool;
  }

  // Calls work(begin, end), which must not throw, for `ranges` ranges of about the same length, which cover [0, n), on up to `threads` threads.
  template <class Work>
  void run(std::uint64_t n, std::uint64_t ranges, std::uint64_t threads, const Work& work) {
    if (ranges <= 1) return work(std::uint64_t{0}, n);
    Job job{[](const void* w, std::uint64_t begin, std::uint64_t end) { (*static_cast<const Work*>(w))(begin, end); },
            &work, n, ranges, std::min(threads, ranges) - 1};
    run(job);
  }

 private:
  struct Job {
    void (*call)(const void* work, std::uint64_t begin, std::uint64_t end);
    const void* work;
    std::uint64_t n, ranges, seats;
    std::uint64_t taken = 0, done = 0;  // ranges
    std::condition_variable all_done{};
    Job* next = nullptr;

    std::uint64_t begin_of(std::uint64_t range) const { return range == ranges ? n : n / ranges * range; }
  };

  void run(Job& job) {
    std::unique_lock lock(mutex_);
    const std::uint64_t helpers = job.seats;
    start_workers(helpers);
    Job** end = &jobs_;
    while (*end) end = &(*end)->next;
    *end = &job;
    lock.unlock();
    for (std::uint64_t k = 0; k < helpers; ++k) wake_.notify_one();
    lock.lock();
    take_ranges(job, lock);
    job.all_done.wait(lock, [&job] { return job.done == job.ranges; });
  }

  // Does ranges of a job until none is left; their work without the lock. The job must not be touched behind this call,
  // because its caller may have returned.
  void take_ranges(Job& job, std::unique_lock<std::mutex>& lock) {
    while (job.taken < job.ranges) {
      const std::uint64_t range = job.taken++;
      if (job.taken == job.ranges) take_off(job);
      lock.unlock();
      job.call(job.work, job.begin_of(range), job.begin_of(range + 1));
      lock.lock();
      if (++job.done == job.ranges) job.all_done.notify_one();
    }
  }

  // Takes a job off the list, unless that was done before.
  void take_off(const Job& job) {
    for (Job** at = &jobs_; *at; at = &(*at)->next)
      if (*at == &job) {
        *at = job.next;
        return;
      }
  }

  void start_workers(std::uint64_t wanted) {
    if (ending_) return;
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigdelset(&blocked, fault);  // for faulthandler
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    try {
      while (workers_.size() < wanted) {
        workers_.emplace_back([this] { work(); });
        pthread_setname_np(workers_.back().native_handle(), "warphash");
      }
    } catch (const std::exception&) {  // no thread or no memory to be had: the call has fewer threads
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return jobs_ || ending_; });
      if (ending_) return;
      Job& job = *jobs_;
      if (--job.seats == 0) take_off(job);
      ++busy_;
      take_ranges(job, lock);
      --busy_;
    }
  }

  // Ends the workers, unless there is work for them.
  void end_idle_workers() {
    std::unique_lock lock(mutex_);
    if (jobs_ || busy_ || ending_) return;
    ending_ = true;
    wake_.notify_all();
    lock.unlock();
    for (std::thread& worker : workers_) worker.join();
    lock.lock();
    workers_.clear();
    ending_ = false;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  Job* jobs_ = nullptr;  // with free seats and free ranges, in the order of their calls
  std::vector<std::thread> workers_;
  std::uint64_t busy_ = 0;  // workers
  bool ending_ = false;
};

}  // namespace warphash_cpu
