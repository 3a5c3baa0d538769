#include "attach/borrowed_thread.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "attach/refusals.h"
#include "attach/registers.h"
#include "attach/return_places.h"
#include "attach/stopped_process.h"
#include "attach/thread/exec_rights.h"
#include "attach/thread/interrupted_call.h"
#include "attach/thread/stragglers.h"
#include "attach/thread/thread_states.h"
#include "attach/wait_limit.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLookNs = 1'000'000;  // after this long we ask the threads again

// Threads in the order in which they are asked: those last that wait for a signal, which
// must not be kept from it.
std::vector<pid_t> BorrowableThreads(const RemoteProcess& process) {
  std::vector<pid_t> threads = process.Threads();
  constexpr size_t kLookedAt = 64;
  const auto waits_for_signal = [&](pid_t tid) {
    const std::string text = ReadProcFile(
        ProcPath(process.pid(), "task/" + std::to_string(tid) + "/syscall"), 64);
    const long number = strtol(text.c_str(), nullptr, 10);
    return WaitsForSignal(number);
  };
  const auto end =
      threads.begin() + static_cast<ptrdiff_t>(std::min(threads.size(), kLookedAt));
  std::stable_partition(threads.begin(), end,
                        [&](pid_t tid) { return !waits_for_signal(tid); });
  return threads;
}

Status NoThreadStops(pid_t pid) {
  return CannotAttach(pid,
                      "its threads are in an uninterruptible sleep; try again later");
}

// Which threads are taken, and what was seen of those that were not.
struct Search {
  // Also those that our system calls take registers from (VectorState). We put those back,
  // but a thread that goes back by itself, as we have died or get no processor, cannot.
  bool takes_vectors = false;
  bool has_vectors = false;  // one of them has such
  bool is_starved = false;   // one of them has only got no processor
};

bool IsTooPrecious(const TracedThread& thread, Search* search) {
  VectorState vectors;
  if (search->takes_vectors || !ReadVectorState(thread.tid(), &vectors) ||
      !HasVectors(vectors))
    return false;
  search->has_vectors = true;
  return true;
}

// Whether the thread, which has been asked to stop, can run our code. It is let go when
// not.
Status TryToBorrow(const RemoteProcess& process,
                   uint64_t deadline,
                   Search* search,
                   TracedThread* thread) {
  const pid_t pid = process.pid();
  switch (thread->WaitForStop(deadline)) {
    case TracedThread::Wait::kGone:
      return SeizeError(pid, ESRCH);
    case TracedThread::Wait::kTimedOut:
      thread->Abandon();
      return CannotAttach(
          pid, std::string("a thread of it") + kDidNotStop + "; try again later");
    case TracedThread::Wait::kStopped:
      break;
  }
  Status status;
  if (!process.IsSameImage())
    status = LostRace(pid, "it has just become another program");
  else if (!thread->CanRunOurCalls())
    status = SeizeError(pid, EPERM);
  else if (thread->context().IsInRestartableSequence(process))
    status = LostRace(pid, "its threads do not leave a restartable sequence");
  else if (IsTooPrecious(*thread, search))
    status = Status(StatusCode::kTryAgain, "");  // and then it is taken
  if (!status.ok())
    thread->Release();
  return status;
}

// One that cannot stop stays ours until it can, and meanwhile keeps signals from the
// program: those that can be seen to be such are left alone, and not many are tried.
Result<TracedThread> BorrowAny(const RemoteProcess& process, Search* search) {
  const pid_t pid = process.pid();
  constexpr int kMaxTried = 8;
  constexpr uint64_t kPerThreadNs = 100'000'000;
  constexpr uint64_t kAllNs = 500'000'000;
  const uint64_t deadline = MonotonicNs() + kAllNs;
  Status status = SeizeError(pid, ESRCH);
  int tried = 0;
  for (bool does_none_stop = true; does_none_stop && MonotonicNs() < deadline;) {
    does_none_stop = false;
    for (const pid_t tid : BorrowableThreads(process)) {
      if (tried == kMaxTried || MonotonicNs() > deadline)
        return status;
      if (IsUninterruptible(tid)) {
        status = NoThreadStops(pid);
        does_none_stop = tried == 0;
        continue;
      }
      TracedThread thread(tid);
      if (!thread.Seize()) {
        if (errno != ESRCH)
          status = SeizeError(pid, errno);
        continue;  // the leader has ended, others may live
      }
      ++tried;
      Status tried_status = TryToBorrow(
          process, std::min(MonotonicNs() + kPerThreadNs, deadline), search, &thread);
      if (tried_status.ok())
        return thread;
      search->is_starved |=
          tried_status.code() == StatusCode::kUnavailable && IsReady(tid);
      if (tried_status.code() != StatusCode::kNotFound)
        status = std::move(tried_status);
    }
    SleepNs(kLookNs);
  }
  return status;
}

}  // namespace

// On a busy machine a thread stops as soon as it would have run: it may take its time.
Result<TracedThread> BorrowThread(const RemoteProcess& process) {
  constexpr uint64_t kStarvedNs = 2'000'000'000;
  const uint64_t last = WaitUntil(kStarvedNs);
  Search search;
  while (true) {
    if (!AwaitNoExec(process))
      return IsInExecNow(process.pid());
    search.is_starved = false;
    Result<TracedThread> thread = BorrowAny(process, &search);
    ReleaseStragglers();
    if (!thread.ok() && search.has_vectors && !search.takes_vectors)
      search.takes_vectors = true;
    else if (thread.ok() || !search.is_starved || MonotonicNs() >= last)
      return thread;
  }
}

uint64_t MainThreadPointer(const RemoteProcess& process) {
  const pid_t pid = process.pid();
  constexpr uint64_t kPatienceNs = 20'000'000;
  constexpr uint64_t kStarvedNs = 500'000'000;
  TracedThread leader(pid);
  if (!AwaitNoExec(process) || IsUninterruptible(pid) || !leader.Seize())
    return 0;
  const uint64_t last = WaitUntil(kStarvedNs);
  TracedThread::Wait outcome = leader.WaitForStop(MonotonicNs() + kPatienceNs);
  while (outcome == TracedThread::Wait::kTimedOut && IsReady(pid) && MonotonicNs() < last)
    outcome = leader.WaitForStop(MonotonicNs() + kPatienceNs);
  if (outcome != TracedThread::Wait::kStopped) {
    leader.Abandon();
    return 0;
  }
  const uint64_t thread_pointer = ThreadPointerOf(pid, leader.context().registers());
  leader.Release();
  return thread_pointer;
}

namespace {

bool IsOnStack(const TracedThread& thread, const OurCode& code) {
  const uint64_t sp = StackPointer(thread.context().registers());
  return code.stack_begin != 0 && sp >= code.stack_begin && sp <= code.stack_end;
}

}  // namespace

bool IsAnyIn(const std::vector<TracedThread>& threads, const OurCode& code) {
  const bool is_on_stack = std::any_of(
      threads.begin(), threads.end(),
      [&code](const TracedThread& thread) { return IsOnStack(thread, code); });
  std::vector<std::pair<uint64_t, uint64_t>> ranges = {{code.begin, code.end}};
  if (code.stack_begin != 0)  // a handler that interrupted what runs there
    ranges.emplace_back(code.stack_begin, code.stack_end);
  return is_on_stack || IsAnyInside(threads, ranges);
}

// What lies on a stack may be only a rest of what was there, and nobody knows who has left
// a thread in our code: that is all that can be said of it.
Status AwaitStrayThread(const RemoteProcess& process, const OurCode& code) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;  // longer than the setup may take
  constexpr uint64_t kRetryNs = 5'000'000;
  const uint64_t deadline = WaitUntil(kPatienceNs);
  do {
    {
      HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process));
      if (!IsAnyIn(stopped.threads(), code))
        return {};
    }
    SleepNs(kRetryNs);
  } while (MonotonicNs() < deadline);
  return LostRace(process.pid(),
                  "a thread of it may still be in what an earlier attempt to attach has "
                  "begun; if the process is stopped, let it go on");
}

}  // namespace heapprofd
