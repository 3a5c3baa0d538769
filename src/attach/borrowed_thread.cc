#include "attach/borrowed_thread.h"

#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "attach/client_image.h"
#include "attach/code_cave.h"

namespace heapprofd {
namespace {

constexpr uint64_t kRunTimeoutNs = 5'000'000'000;  // of our code in a borrowed thread
constexpr uint64_t kLookNs = 1'000'000;            // after this long we look where it is

void Sleep(long ns) {
  const timespec pause{.tv_sec = 0, .tv_nsec = ns};
  nanosleep(&pause, nullptr);
}

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

Status CannotWriteCode(pid_t pid) {
  return CannotAttach(
      pid,
      "its code cannot be written to, not even by a tracer; allow that to "
      "tracers (kernel option proc_mem.force_override)");
}

Result<TracedThread> BorrowThread(const RemoteProcess& process) {
  const pid_t pid = process.pid();
  const bool is_filtered = IsUnderSeccomp(pid);
  constexpr uint64_t kPerThreadNs = 100'000'000;
  Status status = SeizeError(pid, ESRCH);
  for (const pid_t tid : BorrowableThreads(process)) {
    TracedThread thread(tid);
    if (!thread.Seize(is_filtered)) {
      if (errno == ESRCH)
        continue;
      status = SeizeError(pid, errno);
      continue;  // the leader has ended, others may live
    }
    const TracedThread::Wait outcome = thread.WaitForStop(NowNs() + kPerThreadNs);
    if (outcome == TracedThread::Wait::kGone)
      continue;
    if (outcome == TracedThread::Wait::kStopped) {
      if (!process.IsSameImage()) {
        thread.Release(pid);
        return LostRace(pid, "it has just become another program");
      }
      thread.RestartInterruptedCall(pid);
      return thread;
    }
    thread.Release(pid);
    status =
        CannotAttach(pid, "its threads are in an uninterruptible sleep; try again later");
  }
  return status;
}

uint64_t MainThreadPointer(const RemoteProcess& process) {
  const pid_t pid = process.pid();
  constexpr uint64_t kPatienceNs = 20'000'000;
  TracedThread leader(pid);
  if (!leader.Seize(IsUnderSeccomp(pid)))
    return 0;
  const bool is_stopped =
      leader.WaitForStop(NowNs() + kPatienceNs) == TracedThread::Wait::kStopped;
  if (is_stopped)
    leader.RestartInterruptedCall(pid);
  leader.Release(pid);
  return is_stopped ? leader.registers().fs_base : 0;
}

Status MapImage(const RemoteProcess& process,
                const std::vector<MapEntry>& maps,
                uint64_t base,
                TracedThread* thread) {
  const pid_t pid = process.pid();
  Result<CodeCave> cave = FindCodeCave(process, maps);
  if (!cave.ok())
    return CannotAttach(pid, cave.status().message());
  const AttachHeader& header = ClientHeader();
  const std::vector<uint8_t> stub =
      MakeStub(base, header.total_size, header.code_size, thread->ResumeState());
  const uint64_t begin = cave.value().address;
  if (!process.Write(begin, stub.data(), stub.size()))
    return CannotWriteCode(pid);
  user_regs_struct registers = thread->registers();
  registers.rip = begin;
  registers.orig_rax = ~uint64_t{0};
  bool is_out = false;
  if (thread->SetRegisters(registers) && thread->Continue()) {
    const uint64_t deadline = NowNs() + kRunTimeoutNs;
    for (uint64_t look_at = NowNs() + kLookNs; !is_out && NowNs() < deadline;) {
      if (!thread->Serve())
        return SeizeError(pid, ESRCH);
      uint64_t word = 0;
      if (NowNs() < look_at && !process.ReadObject(base, &word)) {
        Sleep(5'000);
        continue;
      }
      thread->Interrupt();
      if (thread->WaitForStop(deadline) != TracedThread::Wait::kStopped)
        return SeizeError(pid, ESRCH);
      // Nor may a signal handler be under way that will return there.
      is_out = !IsAnyInside(pid, {*thread}, {{begin, begin + stub.size()}});
      if (!is_out)
        thread->Continue();
    }
  }
  process.Write(begin, cave.value().contents.data(), cave.value().contents.size());
  if (is_out)
    thread->RestartInterruptedCall(pid);
  const std::vector<MapEntry> now = process.Maps();
  const bool is_mapped = std::any_of(now.begin(), now.end(), [&](const MapEntry& entry) {
    return entry.start == base && entry.end == base + header.code_size &&
           entry.executable;
  });
  return is_out && is_mapped
             ? Status()
             : LostRace(pid,
                        "memory could not be mapped in it (a limit on its address "
                        "space, or it has just mapped some itself)");
}

Result<SetupResult> RunSetup(
    const RemoteProcess& process,
    uint64_t base,
    const TracedThread& thread,
    const std::function<Status(const SetupResult&)>& take_files) {
  const pid_t pid = process.pid();
  const uint64_t state = base + ClientHeader().state;
  const ResumeRegisters resume = ToResumeRegisters(thread.ResumeState());
  constexpr uint64_t kBelowStack = 512;  // the red zone, and a little more
  if (!process.WriteObject(state + offsetof(AttachState, resume), resume))
    return CannotAttach(pid, "the memory mapped for the profiler cannot be written to");
  user_regs_struct registers = thread.registers();
  registers.rip = base + ClientHeader().setup;
  registers.rsp = (registers.rsp - kBelowStack) & ~uint64_t{15};
  registers.orig_rax = ~uint64_t{0};
  if (!thread.SetRegisters(registers) || !thread.Continue())
    return SeizeError(pid, ESRCH);
  const uint64_t result_address = state + offsetof(AttachState, result);
  const uint64_t deadline = NowNs() + kRunTimeoutNs;
  bool has_files = false;
  while (NowNs() < deadline) {
    SetupResult result{};
    if (!thread.Serve() || !process.ReadObject(result_address, &result))
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
    Sleep(5'000);
  }
  return LostRace(pid,
                  "a thread of it did not come back from the setup (a signal handler "
                  "jumped out of it)");
}

}  // namespace heapprofd
