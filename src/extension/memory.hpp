// Memory of the CPU engine: pages of the system, of which a process keeps what is freed for its next request.
//
// Requests. One of up to 64 KiB goes to the C library, which keeps what is freed. A larger one gets pages of its own: huge
// ones where the system has them and the request is of 2 MiB at least, because a random access to a large table
// otherwise misses the TLB as well as the cache. Its length is a multiple of the pages.
//
// Protocol of freed pages. All steps hold the mutex of `FreedPages`, and none waits for anything else.
//   1. keep: pages that are freed go to the end of a list, marked by MADV_FREE: the system takes them back when it is short
//      of memory, and what they had is lost then. The pages that were freed longest ago are unmapped until the list
//      is within its bounds.
//   2. take: a request gets the least pages of the list that have room for it, if at most a quarter of them is too much;
//      the latest of equal ones, which the cache may still have. Their content is anything.
//   3. If the system refuses new pages, the list is unmapped, and the system is asked once more.
//
// Fork. A child unmaps the list: to write to pages that it shares with its parent would copy each. The mutex is held
// during a fork, so the list is whole.
//
// Exit. The list is never destroyed, because a daemon thread may be in the middle of a call.
//
// Why. The system clears a page when a process first touches it, and maps it: 0.2 us for 4 KiB where memory is free, and
// 25 us on a virtual machine that gives free memory back to its host. A call takes fresh memory for what it works with, so
// it paid this each time (docs/performance/cpu.md).
#pragma once
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace warphash_cpu {

// Pages in a row, from an address on that their size divides.
struct Pages {
  std::uintptr_t at = 0;
  std::uint64_t nbytes = 0;
  explicit operator bool() const { return at != 0; }
};

class FreedPages {
 public:
  // The list of this process. The first call must come before any that could run beside a fork.
  static FreedPages& get() {
    static FreedPages* const freed = [] {
      pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                     [] {
                       get().unmap_to(0);
                       get().mutex_.unlock();
                     });
      return new FreedPages;
    }();
    return *freed;
  }

  // Keeps so many bytes at most from here on.
  void set_most(std::uint64_t nbytes) {
    const std::lock_guard lock(mutex_);
    most_ = nbytes;
    unmap_to(most_);
  }

  std::uint64_t kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    unmap_to(0);
  }

  // Pages of at least so many bytes; none if no kept ones will do.
  Pages take(std::uint64_t nbytes) {
    const std::lock_guard lock(mutex_);
    std::size_t best = list_.size();
    for (std::size_t k = list_.size(); k-- > 0;)
      if (list_[k].nbytes >= nbytes && list_[k].nbytes - nbytes <= list_[k].nbytes / 4 &&
          (best == list_.size() || list_[k].nbytes < list_[best].nbytes))
        best = k;
    if (best == list_.size()) return {};
    const Pages found = list_[best];
    list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(best));
    kept_ -= found.nbytes;
    return found;
  }

  void keep(const Pages& pages) noexcept {
    const std::lock_guard lock(mutex_);
    if (pages.nbytes > most_) return unmap(pages);
    madvise(reinterpret_cast<void*>(pages.at), pages.nbytes, MADV_FREE);  // a refusal costs memory only
    if (list_.size() == kMostRuns) unmap_first();
    list_.push_back(pages);  // which has room: `list_` never allocates here
    kept_ += pages.nbytes;
    unmap_to(most_);
  }

 private:
  static constexpr std::size_t kMostRuns = 256;

  FreedPages() { list_.reserve(kMostRuns); }

  static void unmap(const Pages& pages) { munmap(reinterpret_cast<void*>(pages.at), pages.nbytes); }
  void unmap_first() {
    kept_ -= list_.front().nbytes;
    unmap(list_.front());
    list_.erase(list_.begin());
  }
  void unmap_to(std::uint64_t most) {
    while (kept_ > most) unmap_first();
  }

  std::mutex mutex_;
  std::vector<Pages> list_;  // those that were freed first come first
  std::uint64_t kept_ = 0, most_ = 0;
};

// A block of memory, which is somebody's alone until it is destroyed. Its content is anything.
class Memory {
 public:
  explicit Memory(std::uint64_t nbytes) : nbytes_(nbytes) {
    if (nbytes > kMostOfHeap) {
      pages_ = pages_of(nbytes);
      at_ = pages_.at;
    } else {
      const std::uint64_t room = round_up(std::max<std::uint64_t>(nbytes, 1), kAlignment);
      at_ = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(kAlignment, room));
    }
    if (!at_) throw std::bad_alloc();
  }
  ~Memory() {
    if (pages_)
      FreedPages::get().keep(pages_);
    else
      std::free(reinterpret_cast<void*>(at_));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::uintptr_t ptr() const { return at_; }
  std::uint64_t nbytes() const { return nbytes_; }

 private:
  static constexpr std::uint64_t kMostOfHeap = 1 << 16, kAlignment = 256, kHugePage = 2 << 20;
  static constexpr std::uint64_t kMostOfPages = std::uint64_t{1} << 46;

  static std::uint64_t round_up(std::uint64_t n, std::uint64_t unit) { return (n + unit - 1) / unit * unit; }

  // Pages for so many bytes; none if the system refuses them.
  static Pages pages_of(std::uint64_t nbytes) {
    if (nbytes > kMostOfPages) return {};
    const std::uint64_t unit = nbytes >= kHugePage ? kHugePage : static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const std::uint64_t length = round_up(nbytes, unit);
    FreedPages& freed = FreedPages::get();
    Pages pages = freed.take(length);
    if (pages) return pages;
    pages = mapped(length, unit);
    if (pages) return pages;
    freed.clear();
    return mapped(length, unit);
  }

  // New pages from an address on that `unit` divides.
  static Pages mapped(std::uint64_t length, std::uint64_t unit) {
    const std::uint64_t slack = unit == kHugePage ? unit : 0;
    void* const p = mmap(nullptr, length + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return {};
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(p), at = round_up(first, unit);
    if (at > first) munmap(p, at - first);
    if (at - first < slack) munmap(reinterpret_cast<void*>(at + length), slack - (at - first));
#if defined(MADV_HUGEPAGE)
    if (slack) madvise(reinterpret_cast<void*>(at), length, MADV_HUGEPAGE);  // a refusal costs speed only
#endif
    return {at, length};
  }

  std::uint64_t nbytes_;
  Pages pages_;  // none: of the C library
  std::uintptr_t at_;
};

}  // namespace warphash_cpu
