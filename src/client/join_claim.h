// Which thread of a forked child asks for the child's own session. It is known before
// anybody can see that one does: a signal handler that allocates may interrupt that
// thread at any instruction, and must not wait for what it has interrupted.
#pragma once

#include <atomic>
#include <cstdint>

namespace heapprofd {

class JoinClaim {
 public:
  enum class Holder : uint8_t { kNobody, kThisThread, kAnother };

  // kNobody: it is this thread's now. `thread_pointer`: of the calling thread, never 0.
  Holder Take(uint64_t thread_pointer) {
    uint64_t holder = 0;
    return holder_.compare_exchange_strong(holder, thread_pointer)
               ? Holder::kNobody
               : Who(holder, thread_pointer);
  }

  Holder HolderFor(uint64_t thread_pointer) const {
    return Who(holder_.load(std::memory_order_acquire), thread_pointer);
  }

  // Also in a forked child, whose parent may have been about to join.
  void Release() { holder_.store(0, std::memory_order_release); }

 private:
  static Holder Who(uint64_t holder, uint64_t thread_pointer) {
    if (holder == 0)
      return Holder::kNobody;
    return holder == thread_pointer ? Holder::kThisThread : Holder::kAnother;
  }

  std::atomic<uint64_t> holder_;
};

}  // namespace heapprofd
