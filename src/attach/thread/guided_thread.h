// Leads a borrowed thread through our code: from one system call of that code to the next,
// of which each is compared with the one that our code makes there.
//
// Other threads of the process share its code, memory and our stack: whatever runs here
// may be theirs. So no instruction runs with a seccomp filter suspended. The kernel stops
// a thread at the begin of a call before it asks the filter; the filter is suspended then,
// if the call is ours, and in force again when the thread has stopped at the call's end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "attach/registers.h"
#include "attach/thread/traced_thread.h"
#include "base/status.h"

namespace heapprofd {

struct OurCall {
  int64_t number = 0;
  std::vector<uint64_t> arguments;  // those that it has
  unsigned at_most = 0;             // bit n: argument n is positive and may be less
};

// Addresses of our code, in which all of its system calls are.
struct CodeRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

class GuidedThread {
 public:
  // `thread` is stopped, belongs to process `pid`, and outlives this object.
  static Result<GuidedThread> Create(pid_t pid, TracedThread* thread);

  // Blocked signals and registers of the thread before we have led it away.
  uint64_t signal_mask() const { return signal_mask_; }

  // Lets the thread begin at `address`, with all signals blocked.
  Status LeadTo(uint64_t address, uint64_t stack, const CodeRange& code);

  // Calls that our code may make between those that are expected, at most so many.
  void AllowBetween(std::function<bool(const OurCall&)> may_be, int most) {
    may_be_between_ = std::move(may_be);
    between_left_ = most;
  }

  // Lets the thread go on through its next system call, which is to be `call`, and stops
  // it there. Returns the call's result: negative error numbers, as of the kernel. Fails
  // when the thread makes another call, which is not executed.
  Result<int64_t> Expect(const OurCall& call);

  // Lets the thread go on without any system call until `is_done`, which is asked again
  // and again.
  Status RunUntil(const std::function<bool()>& is_done);

  // Puts the thread back where it was, wherever it is now, and stopped. A call that it has
  // begun is not executed.
  Status PutBack();

 private:
  GuidedThread(pid_t pid, TracedThread* thread, uint64_t deadline_ns)
      : pid_(pid), thread_(thread), deadline_ns_(deadline_ns) {}

  enum class At : uint8_t { kBegin, kEnd, kFault };

  Result<At> AwaitCall();
  Result<int64_t> GoThrough();
  bool IsExpected(const OurCall& call, int64_t* number) const;
  bool MayBeBetween();
  Status StopForPutBack();

  pid_t pid_;
  TracedThread* thread_;
  uint64_t deadline_ns_;
  CodeRange code_;
  user_regs_struct registers_{};
  uint64_t signal_mask_ = 0;
  VectorState vectors_;
  std::function<bool(const OurCall&)> may_be_between_;
  int between_left_ = 0;
  bool runs_ = false;         // it has not stopped since it was let go on
  bool is_at_begin_ = false;  // of a call that has not been executed
};

}  // namespace heapprofd
