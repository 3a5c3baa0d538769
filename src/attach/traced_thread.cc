#include "attach/traced_thread.h"

#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace heapprofd {
namespace {

constexpr int kSuspendSeccomp = 1
                                << 21;  // PTRACE_O_SUSPEND_SECCOMP, not in <sys/ptrace.h>
constexpr uint64_t kReleaseTimeoutNs = 200'000'000;
constexpr size_t kSyscallLength = 2;  // bytes of the instruction

// In-kernel results of an interrupted system call that the kernel acts upon when the
// thread goes on (linux/errno.h, not exported).
constexpr int64_t kRestartSys = -512;
constexpr int64_t kRestartNoIntr = -513;
constexpr int64_t kRestartNoHand = -514;
constexpr int64_t kRestartBlock = -516;

void Pause() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 20'000};
  nanosleep(&pause, nullptr);
}

// Calls that end with EINTR after any stop, even if no signal is delivered.
bool EndsWithEintr(int64_t number) {
  constexpr std::array kCalls = {
      SYS_epoll_wait,     SYS_epoll_pwait, SYS_epoll_pwait2, SYS_rt_sigtimedwait,
      SYS_semop,          SYS_semtimedop,  SYS_io_getevents, SYS_io_pgetevents,
      SYS_io_uring_enter, SYS_accept,      SYS_accept4,      SYS_recvfrom,
      SYS_recvmsg,        SYS_recvmmsg,    SYS_sendto,       SYS_sendmsg,
      SYS_sendmmsg,       SYS_read,        SYS_readv,        SYS_write,
      SYS_writev};
  return std::find(kCalls.begin(), kCalls.end(), number) != kCalls.end();
}

uint64_t SignalSet(const std::string& status, const char* name) {
  return strtoull(StatusField(status, name).c_str(), nullptr, 16);
}

bool HasPendingSignal(pid_t pid, pid_t tid) {
  const std::string status =
      ReadProcFile(ProcPath(pid, "task/" + std::to_string(tid) + "/status"), 16384);
  const uint64_t pending = SignalSet(status, "SigPnd") | SignalSet(status, "ShdPnd");
  return (pending & ~SignalSet(status, "SigBlk")) != 0;
}

bool IsDead(pid_t pid, pid_t tid) {
  const std::string text =
      ReadProcFile(ProcPath(pid, "task/" + std::to_string(tid) + "/stat"), 1024);
  const size_t end_of_name = text.rfind(')');
  return end_of_name == std::string::npos || end_of_name + 2 >= text.size() ||
         text[end_of_name + 2] == 'Z' || text[end_of_name + 2] == 'X';
}

// Threads that did not stop when they were to be let go: once they do, somebody must tell
// them to go on. Only the thread that traces them can.
struct Straggler {
  pid_t pid;
  TracedThread thread;
};

thread_local std::vector<Straggler> t_stragglers;

}  // namespace

bool IsUnderSeccomp(pid_t tid) {
  const std::string mode =
      StatusField(ReadProcFile(ProcPath(tid, "status"), 16384), "Seccomp");
  return !mode.empty() && mode != "0";
}

bool IsAnyUnderSeccomp(pid_t pid) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      opendir(ProcPath(pid, "task").c_str()), closedir);
  while (const dirent* entry =
             directory != nullptr ? readdir(directory.get()) : nullptr) {
    const int tid = atoi(entry->d_name);  // NOLINT(cert-err34-c): "." and ".." give 0
    if (tid > 0 && IsUnderSeccomp(tid))
      return true;
  }
  return false;
}

Status SeizeError(pid_t pid, int error) {
  const std::string what = "cannot attach to process " + std::to_string(pid) + ": ";
  if (error == ESRCH)
    return Status(StatusCode::kNotFound, what + "it has ended");
  const std::string tracer =
      StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "TracerPid");
  if (!tracer.empty() && tracer != "0")
    return Status(StatusCode::kUnavailable,
                  what + "process " + tracer +
                      " traces it already (a debugger or strace); end that first");
  if (IsUnderSeccomp(pid) && geteuid() != 0)
    return Status(StatusCode::kUnavailable,
                  what +
                      "it runs under a seccomp filter, which only root can suspend; "
                      "run heap_profile as root");
  return Status(
      StatusCode::kUnavailable,
      what + strerror(error) + "; see heap_profile doctor -p " + std::to_string(pid));
}

bool TracedThread::Seize(bool is_filtered) {
  const long options = is_filtered ? kSuspendSeccomp : 0;
  const size_t stragglers = std::erase_if(
      t_stragglers,
      [this](const Straggler& straggler) { return straggler.thread.tid() == tid_; });
  if (stragglers > 0)  // it is ours still
    ptrace(PTRACE_SETOPTIONS, tid_, 0, options);
  else if (ptrace(PTRACE_SEIZE, tid_, 0, options) != 0)
    return false;
  Interrupt();
  return true;
}

bool TracedThread::SeizeForExec(bool is_filtered) const {
  const long options = PTRACE_O_TRACEEXEC | (is_filtered ? kSuspendSeccomp : 0);
  return ptrace(PTRACE_SEIZE, tid_, 0, options) == 0;
}

void TracedThread::Interrupt() const {
  ptrace(PTRACE_INTERRUPT, tid_, 0, 0);
}

TracedThread::Wait TracedThread::WaitForStop(uint64_t deadline_ns) {
  while (true) {
    int status = 0;
    const pid_t waited = waitpid(tid_, &status, __WALL | WNOHANG);
    if (waited < 0 || (waited > 0 && !WIFSTOPPED(status)))
      return Wait::kGone;
    if (waited == 0) {
      if (NowNs() > deadline_ns)
        return Wait::kTimedOut;
      Pause();
      continue;
    }
    if (status >> 16 == PTRACE_EVENT_STOP) {
      NoteStopped();
      return is_stopped_ ? Wait::kStopped : Wait::kGone;
    }
    // A signal came first: it is delivered, our stop stays pending.
    Continue(status >> 16 != 0 ? 0 : WSTOPSIG(status));
  }
}

void TracedThread::NoteStopped() {
  is_stopped_ = ptrace(PTRACE_GETREGS, tid_, 0, &registers_) == 0;
}

bool TracedThread::Serve() {
  int status = 0;
  const pid_t waited = waitpid(tid_, &status, __WALL | WNOHANG);
  if (waited == 0)
    return true;
  if (waited < 0 || !WIFSTOPPED(status))
    return false;
  Continue(status >> 16 != 0 ? 0 : WSTOPSIG(status));
  return true;
}

void TracedThread::RestartInterruptedCall(pid_t pid) {
  const auto number = static_cast<int64_t>(registers_.orig_rax);
  if (static_cast<int64_t>(registers_.rax) != -EINTR || number < 0 ||
      !EndsWithEintr(number) || HasPendingSignal(pid, tid_))
    return;
  registers_.rax = registers_.orig_rax;
  registers_.rip -= kSyscallLength;
  registers_.orig_rax = ~uint64_t{0};
  SetRegisters(registers_);
}

user_regs_struct TracedThread::ResumeState() const {
  user_regs_struct resume = registers_;
  if (static_cast<int64_t>(resume.orig_rax) < 0)
    return resume;
  switch (static_cast<int64_t>(resume.rax)) {
    case kRestartSys:
    case kRestartNoIntr:
    case kRestartNoHand:
      resume.rax = resume.orig_rax;
      resume.rip -= kSyscallLength;
      break;
    case kRestartBlock:
      resume.rax = SYS_restart_syscall;
      resume.rip -= kSyscallLength;
      break;
    default:
      break;
  }
  return resume;
}

bool TracedThread::SetRegisters(const user_regs_struct& registers) const {
  return ptrace(PTRACE_SETREGS, tid_, 0, &registers) == 0;
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
         registers_.rip - sequence.start < sequence.length;
}

bool TracedThread::Continue(int signal) {
  is_stopped_ = false;
  return ptrace(PTRACE_CONT, tid_, 0, static_cast<long>(signal)) == 0;
}

void TracedThread::Release(pid_t pid) {
  was_released_ = true;
  if (is_stopped_) {
    ptrace(PTRACE_DETACH, tid_, 0, 0);
    return;
  }
  // It runs, or it has stopped or ended and we have not looked yet: a signal must not be
  // lost, nor a system call that the stop has interrupted.
  Interrupt();
  switch (WaitForStop(NowNs() + kReleaseTimeoutNs)) {
    case Wait::kStopped:
      RestartInterruptedCall(pid);
      ptrace(PTRACE_DETACH, tid_, 0, 0);
      break;
    case Wait::kTimedOut:
      t_stragglers.push_back({.pid = pid, .thread = *this});
      break;
    case Wait::kGone:
      break;
  }
}

void TracedThread::ReleaseStragglers() {
  for (Straggler& straggler : std::exchange(t_stragglers, {})) {
    TracedThread& thread = straggler.thread;
    const Wait outcome = thread.WaitForStop(/*deadline_ns=*/0);
    if (outcome == Wait::kTimedOut) {
      t_stragglers.push_back(straggler);
    } else if (outcome == Wait::kStopped) {
      thread.RestartInterruptedCall(straggler.pid);
      ptrace(PTRACE_DETACH, thread.tid_, 0, 0);
    }
  }
}

size_t TracedThread::Stragglers() {
  return t_stragglers.size();
}

StoppedProcess::StoppedProcess(pid_t pid) : pid_(pid), stopped_at_ns_(NowNs()) {}

// Those that may take their time come last: nobody waits for them.
StoppedProcess::~StoppedProcess() {
  for (TracedThread& thread : threads_) {
    if (thread.is_stopped())
      thread.Release(pid_);
  }
  for (TracedThread& thread : threads_) {
    if (!thread.was_released())
      thread.Release(pid_);
  }
}

Status StoppedProcess::StopNewThreads(const RemoteProcess& process,
                                      uint64_t patience_ns,
                                      bool* found_new) {
  const size_t first = threads_.size();
  for (const pid_t tid : process.Threads()) {
    const bool is_known =
        std::any_of(threads_.begin(), threads_.end(),
                    [tid](const TracedThread& thread) { return thread.tid() == tid; }) ||
        std::find(gone_.begin(), gone_.end(), tid) != gone_.end();
    if (is_known)
      continue;
    TracedThread thread(tid);
    if (thread.Seize(/*is_filtered=*/false)) {
      threads_.push_back(thread);
    } else if (errno == ESRCH || IsDead(pid_, tid)) {
      gone_.push_back(tid);
    } else {
      return SeizeError(pid_, errno);
    }
    *found_new = true;
  }
  for (size_t i = first; i < threads_.size();) {
    const TracedThread::Wait outcome = threads_[i].WaitForStop(NowNs() + patience_ns);
    if (outcome == TracedThread::Wait::kTimedOut)
      return Status(StatusCode::kTryAgain,
                    "cannot stop process " + std::to_string(pid_) + ": its thread " +
                        std::to_string(threads_[i].tid()) +
                        " is in an uninterruptible sleep; try again later");
    if (outcome == TracedThread::Wait::kGone) {
      gone_.push_back(threads_[i].tid());
      threads_.erase(threads_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      threads_[i].RestartInterruptedCall(pid_);
      ++i;
    }
  }
  return {};
}

// A thread that does not stop is in an uninterruptible sleep (it waits for a disk, or for
// its vfork child to execute a program): the others must not wait for it. They are let
// go, and it is tried again.
Result<StoppedProcess> StoppedProcess::Stop(const RemoteProcess& process) {
  constexpr uint64_t kFirstPatienceNs = 10'000'000;
  constexpr uint64_t kLastPatienceNs = 320'000'000;
  for (uint64_t patience_ns = kFirstPatienceNs;; patience_ns *= 2) {
    Result<StoppedProcess> stopped = TryToStop(process, patience_ns);
    if (stopped.ok() || stopped.status().code() != StatusCode::kTryAgain)
      return stopped;
    if (patience_ns >= kLastPatienceNs)
      return Status(StatusCode::kUnavailable, stopped.status().message());
    const timespec pause{.tv_sec = 0, .tv_nsec = static_cast<long>(patience_ns)};
    nanosleep(&pause, nullptr);
  }
}

Result<StoppedProcess> StoppedProcess::TryToStop(const RemoteProcess& process,
                                                 uint64_t patience_ns) {
  StoppedProcess stopped(process.pid());
  for (bool found_new = true; found_new;) {
    found_new = false;
    HPD_TRY(stopped.StopNewThreads(process, patience_ns, &found_new));
  }
  if (stopped.threads_.empty())
    return SeizeError(process.pid(), ESRCH);
  return stopped;
}

bool IsAnyInside(pid_t pid,
                 const std::vector<TracedThread>& threads,
                 const std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
  constexpr size_t kScanned = size_t{64} << 10;  // bytes of each stack
  constexpr size_t kPage = 4096;
  const auto is_inside = [&ranges](uint64_t address) {
    return std::any_of(ranges.begin(), ranges.end(), [address](const auto& range) {
      return address >= range.first && address < range.second;
    });
  };
  uint64_t low = ~uint64_t{0};
  uint64_t high = 0;
  for (const auto& [begin, end] : ranges) {
    low = std::min(low, begin);
    high = std::max(high, end);
  }
  std::vector<uint64_t> words(kScanned / sizeof(uint64_t));
  for (const TracedThread& thread : threads) {
    if (is_inside(thread.registers().rip))
      return true;
    // Page by page, so that the end of the stack ends the read instead of failing it.
    const uint64_t top = thread.registers().rsp & ~uint64_t{7};
    std::array<iovec, kScanned / kPage + 1> pages{};
    size_t count = 0;
    for (uint64_t at = top; at < top + kScanned; ++count) {
      const uint64_t next = std::min((at | (kPage - 1)) + 1, top + kScanned);
      pages[count] = {.iov_base = reinterpret_cast<void*>(at), .iov_len = next - at};
      at = next;
    }
    const iovec local{.iov_base = words.data(), .iov_len = kScanned};
    const ssize_t got = process_vm_readv(pid, &local, 1, pages.data(), count, 0);
    for (ssize_t i = 0; i < got / 8; ++i) {
      const uint64_t word = words[static_cast<size_t>(i)];
      if (word >= low && word < high && is_inside(word))
        return true;
    }
  }
  return false;
}

}  // namespace heapprofd
