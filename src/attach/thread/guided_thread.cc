#include "attach/thread/guided_thread.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "attach/refusals.h"
#include "attach/wait_limit.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRunTimeoutNs = 5'000'000'000;  // of our code in a borrowed thread
constexpr uint64_t kPollNs = 5'000;
// Until a thread of ours is put back, whatever has been waited for before.
constexpr uint64_t kTakeBackNs = 1'000'000'000;

using CallInfo = __ptrace_syscall_info;

// Of a thread that has stopped at a call.
bool ReadCall(pid_t tid, CallInfo* info) {
  return ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(*info), info) > 0;
}

// All others are blocked in a borrowed thread: of the rest the kernel itself makes those
// that stand for what its instructions have done.
bool IsFault(int status) {
  return status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP;
}

Status Interfered(pid_t pid, const std::string& what) {
  return CannotAttach(pid, what +
                               " in the profiler's code: something in the process has "
                               "changed the code or the stack that the profiler runs "
                               "there; look at what that process is");
}

}  // namespace

Result<GuidedThread> GuidedThread::Create(pid_t pid, TracedThread* thread) {
  GuidedThread guided(pid, thread,
                      std::max(WaitUntil(kRunTimeoutNs), MonotonicNs() + kTakeBackNs));
  const std::optional<uint64_t> mask = thread->context().SignalMask();
  if (!mask || !ReadVectorState(thread->tid(), &guided.vectors_))
    return SeizeError(pid, ESRCH);
  guided.signal_mask_ = *mask;
  guided.registers_ = thread->context().registers();
  return guided;
}

// In this order: whatever of it is not reached, the thread is healthy.
Status GuidedThread::LeadTo(uint64_t address, uint64_t stack, const CodeRange& code) {
  code_ = code;
  const ThreadContext& context = thread_->context();
  if (!context.SetRegisters(LedTo(registers_, address, stack)) ||
      !context.SetSignalMask(~uint64_t{0}))
    return SeizeError(pid_, ESRCH);
  thread_->StopAtCalls(true);
  runs_ = thread_->Continue();
  return runs_ ? Status() : SeizeError(pid_, ESRCH);
}

Result<GuidedThread::At> GuidedThread::AwaitCall() {
  while (true) {
    int status = 0;
    switch (thread_->WaitForEvent([this] { return MonotonicNs() <= deadline_ns_; },
                                  &status)) {
      case TracedThread::Wait::kGone:
        return SeizeError(pid_, ESRCH);
      case TracedThread::Wait::kTimedOut:
        return LostThread(pid_, thread_->tid());
      case TracedThread::Wait::kStopped:
        break;
    }
    CallInfo info{};
    if (thread_->IsAtCall(status) && ReadCall(thread_->tid(), &info)) {
      runs_ = false;
      is_at_begin_ = info.op == PTRACE_SYSCALL_INFO_ENTRY;
      return is_at_begin_ ? At::kBegin : At::kEnd;
    }
    if (IsFault(status)) {
      runs_ = false;
      return At::kFault;
    }
    thread_->PassOn(status);
  }
}

bool GuidedThread::IsExpected(const OurCall& call, int64_t* number) const {
  CallInfo info{};
  if (!ReadCall(thread_->tid(), &info))
    return false;
  *number = static_cast<int64_t>(info.entry.nr);
  if (info.arch != kCallArchitecture || *number != call.number ||
      info.instruction_pointer < code_.begin || info.instruction_pointer > code_.end)
    return false;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const uint64_t given = info.entry.args[i];
    const uint64_t wanted = call.arguments[i];
    const bool may_be_less = (call.at_most >> i & 1) != 0;
    if (may_be_less ? given == 0 || given > wanted : given != wanted)
      return false;
  }
  return true;
}

// The thread has stopped at the begin of a call.
Result<int64_t> GuidedThread::GoThrough() {
  runs_ = thread_->GoThroughCall();
  if (!runs_)
    return SeizeError(pid_, errno);
  HPD_TRY_ASSIGN(const At at, AwaitCall());
  CallInfo info{};
  if (at != At::kEnd || !ReadCall(thread_->tid(), &info))
    return SeizeError(pid_, ESRCH);
  return static_cast<int64_t>(info.exit.rval);
}

bool GuidedThread::MayBeBetween() {
  CallInfo info{};
  if (between_left_ == 0 || !ReadCall(thread_->tid(), &info) ||
      info.arch != kCallArchitecture || info.instruction_pointer < code_.begin ||
      info.instruction_pointer > code_.end ||
      !may_be_between_(
          {.number = static_cast<int64_t>(info.entry.nr),
           .arguments = {std::begin(info.entry.args), std::end(info.entry.args)}}))
    return false;
  --between_left_;
  return true;
}

Result<int64_t> GuidedThread::Expect(const OurCall& call) {
  while (true) {
    if (!runs_ && !(runs_ = thread_->Continue()))
      return SeizeError(pid_, ESRCH);
    HPD_TRY_ASSIGN(const At at, AwaitCall());
    if (at == At::kEnd)
      continue;
    if (at == At::kFault)
      return Interfered(pid_, "a thread of it was stopped by a fault");
    int64_t number = -1;
    if (IsExpected(call, &number))
      return GoThrough();
    if (!MayBeBetween())
      return Interfered(pid_, "a thread of it made system call " +
                                  std::to_string(number) + " instead of " +
                                  std::to_string(call.number));
    HPD_TRY(GoThrough().status());
  }
}

Status GuidedThread::RunUntil(const std::function<bool()>& is_done) {
  if (!runs_ && !(runs_ = thread_->Continue()))
    return SeizeError(pid_, ESRCH);
  while (!is_done()) {
    int status = 0;
    const TracedThread::Wait outcome =
        thread_->WaitForEvent([] { return false; }, &status);
    if (outcome == TracedThread::Wait::kGone)
      return SeizeError(pid_, ESRCH);
    if (MonotonicNs() > deadline_ns_)
      return LostThread(pid_, thread_->tid());
    if (outcome == TracedThread::Wait::kTimedOut) {
      SleepNs(kPollNs);
      continue;
    }
    CallInfo info{};
    const bool is_at_call = thread_->IsAtCall(status) && ReadCall(thread_->tid(), &info);
    if (!is_at_call && !IsFault(status)) {
      thread_->PassOn(status);
      continue;
    }
    runs_ = false;
    is_at_begin_ = is_at_call && info.op == PTRACE_SYSCALL_INFO_ENTRY;
    if (is_at_call && !is_at_begin_) {
      runs_ = thread_->Continue();
      continue;
    }
    return Interfered(pid_, is_at_call ? "a thread of it made system call " +
                                             std::to_string(info.entry.nr)
                                       : "a thread of it was stopped by a fault");
  }
  return {};
}

// To a stop of our own asking: from there the kernel begins anew the call that the thread
// was in when it was borrowed, which it does not do from the end of another.
Status GuidedThread::StopForPutBack() {
  const uint64_t deadline = std::max(deadline_ns_, MonotonicNs() + kTakeBackNs);
  while (true) {
    thread_->Interrupt();  // every other stop ends that
    if (!runs_ && is_at_begin_)
      runs_ = thread_->SkipCall();
    else if (!runs_)
      runs_ = thread_->Continue();
    is_at_begin_ = false;
    int status = 0;
    if (!runs_ || thread_->WaitForEvent([deadline] { return MonotonicNs() <= deadline; },
                                        &status) != TracedThread::Wait::kStopped)
      return LostThread(pid_, thread_->tid());
    runs_ = false;
    CallInfo info{};
    if (thread_->IsAtCall(status))
      is_at_begin_ =
          ReadCall(thread_->tid(), &info) && info.op == PTRACE_SYSCALL_INFO_ENTRY;
    else if (status >> 16 == PTRACE_EVENT_STOP)
      return {};
    else if (!IsFault(status)) {
      thread_->PassOn(status);
      runs_ = true;
    }
  }
}

Status GuidedThread::PutBack() {
  Status stopped = StopForPutBack();
  thread_->StopAtCalls(false);
  if (!stopped.ok())
    return stopped;
  thread_->NoteStopped();
  // All of it, whatever fails: the thread is not to stay in our code.
  const bool has_vectors = WriteVectorState(thread_->tid(), vectors_);
  const bool has_registers = thread_->context().SetRegisters(registers_);
  if (!thread_->context().SetSignalMask(signal_mask_) || !has_registers || !has_vectors)
    return SeizeError(pid_, ESRCH);
  thread_->registers() = registers_;
  return {};
}

}  // namespace heapprofd
