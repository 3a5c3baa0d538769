#include "attach/traced_thread.h"

#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "attach/registers.h"
#include "attach/signal_sets.h"
#include "base/files/own_rights.h"

namespace heapprofd {
namespace {

constexpr int kSuspendSeccomp = 1
                                << 21;  // PTRACE_O_SUSPEND_SECCOMP, not in <sys/ptrace.h>
constexpr uint64_t kReleaseTimeoutNs = 200'000'000;

// Threads that did not stop when they were to be let go: once they do, somebody must tell
// them to go on. Only the thread that traces them can.
thread_local std::vector<TracedThread> t_stragglers;

}  // namespace

bool IsUnderSeccomp(pid_t tid) {
  const std::string mode =
      StatusField(ReadProcFile(ProcPath(tid, "status"), 16384), "Seccomp");
  return !mode.empty() && mode != "0";
}

// The kernel's conditions for PTRACE_O_SUSPEND_SECCOMP.
std::string ObstacleToSuspendingFilters() {
  if (IsSelfUnderSeccomp())
    return "it runs under a seccomp filter, which a profiler that is under one itself "
           "may "
           "not suspend; run heapprofd without a filter (in a container: "
           "seccomp=unconfined)";
  if (!IsInFirstUserNamespace())
    return "it runs under a seccomp filter, which root of a user name space may not "
           "suspend; run heap_profile outside it, as root";
  if (HasCapability(CAP_SYS_ADMIN))
    return "";
  if (geteuid() == 0)
    return "it runs under a seccomp filter, which only root with CAP_SYS_ADMIN can "
           "suspend; give the container of heap_profile that capability";
  return "it runs under a seccomp filter, which only root can suspend; run heap_profile "
         "as root";
}

Status SeizeError(pid_t pid, int error) {
  const std::string what = "cannot attach to process " + std::to_string(pid) + ": ";
  if (error == ESRCH)
    return Status(StatusCode::kNotFound, what + "it has ended");
  const std::string tracer =
      StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "TracerPid");
  if (!tracer.empty() && tracer != "0")
    return Status(
        StatusCode::kUnavailable,
        what + "process " + tracer + " (" +
            CommandName(static_cast<pid_t>(strtol(tracer.c_str(), nullptr, 10))) +
            ") traces it already; end that first");
  const std::string obstacle =
      error == EPERM && IsUnderSeccomp(pid) ? ObstacleToSuspendingFilters() : "";
  if (!obstacle.empty())
    return Status(StatusCode::kUnavailable, what + obstacle);
  return Status(
      StatusCode::kUnavailable,
      what + strerror(error) + "; see heap_profile doctor -p " + std::to_string(pid));
}

namespace {

// As in /proc/TID/status, for which nobody waits; 0: it is gone.
char StateOf(const std::string& directory) {
  const std::string state =
      StatusField(ReadProcFile(directory + "/status", 16384), "State");
  return state.empty() ? '\0' : state.front();
}

}  // namespace

bool IsUninterruptible(pid_t tid) {
  return StateOf(ProcPath(tid, "")) == 'D';
}

bool IsRunnable(pid_t tid) {
  return StateOf(ProcPath(tid, "")) == 'R';
}

bool IsReady(pid_t tid) {
  const char state = StateOf(ProcPath(tid, ""));
  return state == 'R' || state == 't';
}

bool IsDead(pid_t pid, pid_t tid) {
  const char state = StateOf(ProcPath(pid, "task/" + std::to_string(tid)));
  return state == '\0' || state == 'Z' || state == 'X';
}

bool TracedThread::Seize(bool is_filtered) {
  const long options = is_filtered ? kSuspendSeccomp : 0;
  const size_t stragglers = std::erase_if(
      t_stragglers,
      [this](const TracedThread& straggler) { return straggler.tid() == tid_; });
  if (stragglers > 0)  // it is ours still
    ptrace(PTRACE_SETOPTIONS, tid_, 0, options);
  else if (ptrace(PTRACE_SEIZE, tid_, 0, options) != 0)
    return false;
  AskToStop();
  return true;
}

// One that cannot stop now and has been asked to does not hear signals either until it
// can, also when we are gone (the kernel thinks that it has some to deal with): SIGTERM
// would not end it.
void TracedThread::AskToStop() {
  is_to_be_asked_ = IsUninterruptible(tid_);
  if (is_to_be_asked_)
    return;
  waiting_in_ = WaitingCallOf(tid_);
  Interrupt();
}

bool TracedThread::SuspendFilters() const {
  return ptrace(PTRACE_SETOPTIONS, tid_, 0, static_cast<long>(kSuspendSeccomp)) == 0;
}

bool TracedThread::SeizeForExec(bool is_filtered, pid_t pid) {
  const long options = PTRACE_O_TRACEEXEC | (is_filtered ? kSuspendSeccomp : 0);
  tid_after_exec_ = pid;
  bool is_ours = ptrace(PTRACE_SEIZE, tid_, 0, options) == 0;
  if (!is_ours && errno == ESRCH && tid_ != pid) {  // it has just done so
    tid_ = pid;
    is_ours = ptrace(PTRACE_SEIZE, tid_, 0, options) == 0;
  }
  if (is_ours)
    Interrupt();
  return is_ours;
}

TracedThread::Wait TracedThread::WaitForEvent(const std::function<bool()>& may_wait,
                                              int* status) {
  while (true) {
    const pid_t waited = Look(status);
    if (waited < 0 || (waited > 0 && !WIFSTOPPED(*status)))
      return Wait::kGone;
    if (waited > 0)
      return Wait::kStopped;
    if (is_to_be_asked_)
      AskToStop();
    if (!may_wait())
      return Wait::kTimedOut;
    SleepNs(20'000);
  }
}

// It stops when it has executed the program if it is traced by then, and it is asked to
// stop in any case: then it does when it comes out of the call, which may be after that,
// because the call has failed, or because the kernel has it begin the call anew.
TracedThread::Exec TracedThread::WaitForExec(const std::function<bool()>& may_wait,
                                             const std::function<bool()>& is_same_image) {
  while (true) {
    int status = 0;
    const Wait outcome = WaitForEvent(may_wait, &status);
    if (outcome != Wait::kStopped)
      return outcome == Wait::kGone ? Exec::kGone : Exec::kTimedOut;
    if (status >> 16 == PTRACE_EVENT_EXEC) {
      NoteStopped();
      return Exec::kDone;
    }
    if (status >> 16 == PTRACE_EVENT_STOP) {
      NoteStopped();
      if (!is_same_image())
        return Exec::kDone;
      if (!IsExecBegunAnew(registers_))
        return Exec::kFailed;
    }
    PassOn(status);
    Interrupt();
  }
}

// The exec of a thread that is not the first of its process changes its id.
pid_t TracedThread::Look(int* status) {
  const pid_t waited = waitpid(tid_, status, __WALL | WNOHANG);
  if (waited >= 0 || tid_after_exec_ == 0 || tid_after_exec_ == tid_)
    return waited;
  tid_ = tid_after_exec_;
  return waitpid(tid_, status, __WALL | WNOHANG);
}

void TracedThread::Interrupt() const {
  ptrace(PTRACE_INTERRUPT, tid_, 0, 0);
}

TracedThread::Wait TracedThread::WaitForStop(uint64_t deadline_ns) {
  const auto may_wait = [deadline_ns] { return MonotonicNs() <= deadline_ns; };
  while (true) {
    int status = 0;
    const Wait outcome = WaitForEvent(may_wait, &status);
    if (outcome != Wait::kStopped)
      return outcome;
    if (status >> 16 == PTRACE_EVENT_STOP) {
      NoteStopped();
      if (is_stopped_)
        return Wait::kStopped;
      continue;  // killed: to be waited for
    }
    if (status >> 16 != 0 || IsAtCall(status))
      Interrupt();  // another event ends our request; a signal that came first does not
    PassOn(status);
  }
}

void TracedThread::NoteStopped() {
  is_stopped_ = GetRegisters(tid_, &registers_);
  if (is_stopped_)
    RestartInterruptedCall();
}

bool TracedThread::IsAtCall(int status) const {
  siginfo_t info{};
  return knows_calls_ && status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP &&
         ptrace(PTRACE_GETSIGINFO, tid_, 0, &info) == 0 && info.si_code == SIGTRAP;
}

void TracedThread::PassOn(int status) {
  if (IsAtCall(status)) {
    Continue();
    return;
  }
  const int signal = status >> 16 != 0 ? 0 : WSTOPSIG(status);
  if (signal == 0 || !IsCaught(tid_, signal))
    NoteStopped();
  Continue(signal);
}

bool TracedThread::Serve() {
  int status = 0;
  const pid_t waited = Look(&status);
  if (waited == 0)
    return true;
  if (waited < 0 || !WIFSTOPPED(status))
    return false;
  PassOn(status);
  return true;
}

// The signals, too, are blocked as they are outside of the call: one that arrives while
// the thread is stopped and that only the call lets in must find it inside again, or the
// program waits for ever.
void TracedThread::RestartInterruptedCall() {
  const std::optional<user_regs_struct> restarted =
      RestartedCall(tid_, waiting_in_, registers_);
  const std::optional<uint64_t> mask = restarted ? SignalMask() : std::nullopt;
  if (mask && SetSignalMask(*mask) && SetRegisters(*restarted))
    registers_ = *restarted;
}

rt::ResumeRegisters TracedThread::ResumeState() const {
  return ResumedElsewhere(waiting_in_, registers_, IsUnderSeccomp(tid_));
}

bool TracedThread::SetRegisters(const user_regs_struct& registers) const {
  return heapprofd::SetRegisters(tid_, registers);
}

std::optional<uint64_t> TracedThread::SignalMask() const {
  uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, tid_, sizeof(mask), &mask) != 0)
    return std::nullopt;
  return mask;
}

bool TracedThread::SetSignalMask(uint64_t mask) const {
  return ptrace(PTRACE_SETSIGMASK, tid_, sizeof(mask), &mask) == 0;
}

bool TracedThread::IsInRestartableSequence(const RemoteProcess& process) const {
  struct {  // of <linux/ptrace.h>, which cannot be included beside <sys/ptrace.h>
    uint64_t area;
    uint32_t size;
    uint32_t signature;
    uint32_t flags;
    uint32_t pad;
  } configuration{};

  struct {  // of <linux/rseq.h>
    uint32_t version;
    uint32_t flags;
    uint64_t start;
    uint64_t length;
    uint64_t abort;
  } sequence{};

  constexpr auto kGetConfiguration = static_cast<__ptrace_request>(0x420f);
  constexpr uint64_t kSequenceOffset = 8;  // of rseq_cs in the area
  uint64_t address = 0;
  return ptrace(kGetConfiguration, tid_, sizeof(configuration), &configuration) > 0 &&
         configuration.area != 0 &&
         process.ReadObject(configuration.area + kSequenceOffset, &address) &&
         address != 0 && process.ReadObject(address, &sequence) &&
         ProgramCounter(registers_) - sequence.start < sequence.length;
}

bool TracedThread::Continue(int signal) {
  is_stopped_ = false;
  return ptrace(stops_at_calls_ ? PTRACE_SYSCALL : PTRACE_CONT, tid_, 0,
                static_cast<long>(signal)) == 0;
}

void TracedThread::Release() {
  if (std::exchange(was_released_, true))
    return;
  if (is_stopped_ && ptrace(PTRACE_DETACH, tid_, 0, 0) == 0)
    return;
  // One that was killed while it was stopped waits for us to see that it has ended.
  // It runs, or it has stopped or ended and we have not looked yet: a signal must not be
  // lost, nor a system call that the stop has interrupted.
  AskToStop();
  switch (WaitForStop(MonotonicNs() + kReleaseTimeoutNs)) {
    case Wait::kStopped:
      ptrace(PTRACE_DETACH, tid_, 0, 0);
      break;
    case Wait::kTimedOut:
      t_stragglers.push_back(*this);
      break;
    case Wait::kGone:
      break;
  }
}

void TracedThread::Abandon() {
  was_released_ = true;
  t_stragglers.push_back(*this);
}

void TracedThread::ReleaseStragglers() {
  for (TracedThread& thread : std::exchange(t_stragglers, {})) {
    const Wait outcome = thread.WaitForStop(/*deadline_ns=*/0);
    if (outcome == Wait::kTimedOut)
      t_stragglers.push_back(thread);
    else if (outcome == Wait::kStopped)
      ptrace(PTRACE_DETACH, thread.tid_, 0, 0);
  }
}

size_t TracedThread::Stragglers() {
  return t_stragglers.size();
}

}  // namespace heapprofd
