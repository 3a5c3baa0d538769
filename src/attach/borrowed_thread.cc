#include "attach/borrowed_thread.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "attach/client_image.h"
#include "attach/code_cave.h"
#include "attach/stopped_process.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRunTimeoutNs = 5'000'000'000;  // of our code in a borrowed thread
constexpr uint64_t kLookNs = 1'000'000;            // after this long we look where it is

// Threads in the order in which they are asked: those last that wait for a signal, which
// must not be kept from it.
std::vector<pid_t> BorrowableThreads(const RemoteProcess& process) {
  std::vector<pid_t> threads = process.Threads();
  constexpr size_t kLookedAt = 64;
  const auto waits_for_signal = [&](pid_t tid) {
    const std::string text = ReadProcFile(
        ProcPath(process.pid(), "task/" + std::to_string(tid) + "/syscall"), 64);
    const long number = strtol(text.c_str(), nullptr, 10);
    return number == SYS_pause || number == SYS_rt_sigsuspend;
  };
  const auto end =
      threads.begin() + static_cast<ptrdiff_t>(std::min(threads.size(), kLookedAt));
  std::stable_partition(threads.begin(), end,
                        [&](pid_t tid) { return !waits_for_signal(tid); });
  return threads;
}

}  // namespace

Status CannotAttach(pid_t pid, const std::string& why) {
  return Status(StatusCode::kUnavailable,
                "cannot attach to process " + std::to_string(pid) + ": " + why);
}

Status LostRace(pid_t pid, const std::string& why) {
  return Status(StatusCode::kTryAgain, "cannot attach to process " + std::to_string(pid) +
                                           ": " + why + "; try again");
}

Status LostThread(pid_t pid, pid_t tid) {
  if (IsDead(pid, tid))
    return SeizeError(pid, ESRCH);
  return LostRace(pid,
                  "a thread of it did not stop in time (an uninterruptible sleep, or too "
                  "much runs on this machine)");
}

Status CannotWriteCode(pid_t pid) {
  return CannotAttach(
      pid,
      "its code cannot be written to, not even by a tracer; allow that to "
      "tracers (kernel option proc_mem.force_override)");
}

Result<TracedThread> BorrowThread(const RemoteProcess& process) {
  const pid_t pid = process.pid();
  constexpr uint64_t kPerThreadNs = 100'000'000;
  Status status = SeizeError(pid, ESRCH);
  for (const pid_t tid : BorrowableThreads(process)) {
    TracedThread thread(tid);
    if (!thread.Seize(IsUnderSeccomp(tid))) {
      if (errno == ESRCH)
        continue;
      status = SeizeError(pid, errno);
      continue;  // the leader has ended, others may live
    }
    const TracedThread::Wait outcome = thread.WaitForStop(MonotonicNs() + kPerThreadNs);
    if (outcome == TracedThread::Wait::kGone)
      continue;
    if (outcome == TracedThread::Wait::kStopped) {
      if (!process.IsSameImage()) {
        thread.Release();
        return LostRace(pid, "it has just become another program");
      }
      if (!thread.IsInRestartableSequence(process))
        return thread;
      thread.Release();
      status = LostRace(pid, "its threads do not leave a restartable sequence");
      continue;
    }
    thread.Release();
    status =
        CannotAttach(pid, "its threads are in an uninterruptible sleep; try again later");
  }
  return status;
}

uint64_t MainThreadPointer(const RemoteProcess& process) {
  const pid_t pid = process.pid();
  constexpr uint64_t kPatienceNs = 20'000'000;
  TracedThread leader(pid);
  if (!leader.Seize(/*is_filtered=*/false))
    return 0;
  const bool is_stopped =
      leader.WaitForStop(MonotonicNs() + kPatienceNs) == TracedThread::Wait::kStopped;
  leader.Release();
  return is_stopped ? leader.registers().fs_base : 0;
}

namespace {

// Lets the stopped thread go on at `address`, where our code will put everything back by
// itself, the signals included that are blocked now. In this order: whatever of it is not
// reached, the thread is healthy.
bool LeadTo(TracedThread* thread, uint64_t address, uint64_t stack) {
  user_regs_struct registers = thread->registers();
  registers.rip = address;
  registers.rsp = stack;
  registers.orig_rax = ~uint64_t{0};
  return thread->SetRegisters(registers) && thread->SetSignalMask(~uint64_t{0}) &&
         thread->Continue();
}

bool IsImageMapped(const RemoteProcess& process, uint64_t base) {
  const std::vector<MapEntry> maps = process.Maps();
  return std::any_of(maps.begin(), maps.end(), [base](const MapEntry& entry) {
    return entry.start == base && entry.end == base + ClientHeader().code_size &&
           entry.executable;
  });
}

// Until the thread has left [begin, end), stopped.
Status RunOutOf(const RemoteProcess& process,
                uint64_t begin,
                uint64_t end,
                uint64_t base,
                TracedThread* thread) {
  const uint64_t deadline = MonotonicNs() + kRunTimeoutNs;
  const uint64_t look_at = MonotonicNs() + kLookNs;
  while (MonotonicNs() < deadline) {
    uint64_t word = 0;
    if (!thread->Serve())
      return SeizeError(process.pid(), ESRCH);
    if (MonotonicNs() < look_at && !process.ReadObject(base, &word)) {
      SleepNs(5'000);
      continue;
    }
    thread->Interrupt();
    if (thread->WaitForStop(deadline) != TracedThread::Wait::kStopped)
      return LostThread(process.pid(), thread->tid());
    // Nor may a signal handler be under way that will return there.
    if (!IsAnyInside(process.pid(), {*thread}, {{begin, end}}))
      return {};
    thread->Continue();
  }
  return LostRace(process.pid(), "a thread of it did not come back from mapping memory");
}

// Until the memory is mapped; the thread waits in the stub then, and is taken from there
// to where it was before.
Status TakeFromStub(const RemoteProcess& process,
                    uint64_t base,
                    uint64_t mask,
                    const user_regs_struct& before,
                    TracedThread* thread) {
  const uint64_t deadline = MonotonicNs() + kStopTimeoutNs;
  while (!IsImageMapped(process, base) && MonotonicNs() < deadline) {
    if (!thread->Serve())
      return SeizeError(process.pid(), ESRCH);
    SleepNs(5'000);
  }
  thread->Interrupt();
  if (thread->WaitForStop(deadline + kStopTimeoutNs) != TracedThread::Wait::kStopped ||
      !thread->SetSignalMask(mask) || !thread->SetRegisters(before))
    return LostThread(process.pid(), thread->tid());
  thread->registers() = before;
  return {};
}

}  // namespace

bool IsAnyIn(pid_t pid, const std::vector<TracedThread>& threads, const OurCode& code) {
  const bool is_on_stack =
      std::any_of(threads.begin(), threads.end(), [&code](const TracedThread& thread) {
        return code.stack_begin != 0 && thread.registers().rsp >= code.stack_begin &&
               thread.registers().rsp <= code.stack_end;
      });
  return is_on_stack || IsAnyInside(pid, threads, {{code.begin, code.end}});
}

Status AwaitStrayThread(const RemoteProcess& process, const OurCode& code) {
  constexpr uint64_t kPatienceNs = 2'000'000'000;  // longer than the setup may take
  constexpr uint64_t kRetryNs = 5'000'000;
  for (const uint64_t deadline = MonotonicNs() + kPatienceNs; MonotonicNs() < deadline;) {
    {
      HPD_TRY_ASSIGN(const StoppedProcess stopped, StoppedProcess::Stop(process));
      if (!IsAnyIn(process.pid(), stopped.threads(), code))
        return {};
    }
    SleepNs(kRetryNs);
  }
  return LostRace(process.pid(),
                  "a thread of it has not ended what a heap_profile that was killed had "
                  "begun; if the process is stopped, let it go on");
}

Status MapImage(const RemoteProcess& process,
                const CodeCave& cave,
                uint64_t base,
                uint64_t hold_ticks,
                TracedThread* thread) {
  const pid_t pid = process.pid();
  const AttachHeader& header = ClientHeader();
  const user_regs_struct before = thread->registers();
  const std::optional<uint64_t> mask = thread->SignalMask();
  if (!mask)
    return SeizeError(pid, ESRCH);
  const std::vector<uint8_t> stub = MakeStub({.base = base,
                                              .total_size = header.total_size,
                                              .code_size = header.code_size,
                                              .hold_ticks = hold_ticks,
                                              .signal_mask = *mask},
                                             thread->ResumeState());
  const uint64_t begin = cave.address;
  if (!process.Write(begin, stub.data(), stub.size()))
    return CannotWriteCode(pid);
  Status status = SeizeError(pid, ESRCH);
  if (LeadTo(thread, begin, before.rsp))
    status = hold_ticks != 0
                 ? TakeFromStub(process, base, *mask, before, thread)
                 : RunOutOf(process, begin, begin + stub.size(), base, thread);
  process.Write(begin, cave.contents.data(), cave.contents.size());
  HPD_TRY(std::move(status));
  if (IsImageMapped(process, base))
    return {};
  return LostRace(pid,
                  "memory could not be mapped in it (a limit on its address space, or "
                  "it has just mapped some itself)");
}

Result<SetupResult> RunSetup(
    const RemoteProcess& process,
    uint64_t base,
    TracedThread* thread,
    const std::function<Status(const SetupResult&)>& take_files) {
  const pid_t pid = process.pid();
  const uint64_t state = base + ClientHeader().state;
  const ResumeRegisters resume = ToResumeRegisters(thread->ResumeState());
  const std::optional<uint64_t> mask = thread->SignalMask();
  if (!mask)
    return SeizeError(pid, ESRCH);
  if (!process.WriteObject(state + offsetof(AttachState, resume), resume) ||
      !process.WriteObject(state + offsetof(AttachState, request.signal_mask), *mask))
    return CannotAttach(pid, "the memory mapped for the profiler cannot be written to");
  if (!LeadTo(thread, base + ClientHeader().setup, base + ClientHeader().setup_stack_end))
    return SeizeError(pid, ESRCH);
  const uint64_t result_address = state + offsetof(AttachState, result);
  const uint64_t deadline = MonotonicNs() + kRunTimeoutNs;
  bool has_files = false;
  while (MonotonicNs() < deadline) {
    SetupResult result{};
    if (!thread->Serve() || !process.ReadObject(result_address, &result))
      return SeizeError(pid, ESRCH);
    const auto status = static_cast<SetupStatus>(result.status);
    if (status == SetupStatus::kFilesReady && !has_files) {
      HPD_TRY(take_files(result));
      has_files = true;
      process.WriteObject(state + offsetof(AttachState, request.go), uint32_t{1});
    } else if (status == SetupStatus::kDone) {
      return result;
    } else if (status == SetupStatus::kFailed) {
      return CannotAttach(pid, "step " + std::to_string(result.step) +
                                   " of its setup failed: " + strerror(result.error) +
                                   "; check its limits on memory and open files");
    }
    SleepNs(5'000);
  }
  return LostRace(pid,
                  "a thread of it did not come back from the setup (a signal handler "
                  "jumped out of it)");
}

}  // namespace heapprofd
