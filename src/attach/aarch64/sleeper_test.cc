// A thread that was borrowed out of a sleep, and that nobody puts back as its profiler was
// killed, sleeps on until it would have woken.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attach/borrowed_thread.h"
#include "attach/registers.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kDeadlineNs = 60'000'000'000;
constexpr uint64_t kSleepNs =
    20'000'000'000;  // attaching takes its time in an emulated machine

struct Slept {
  std::atomic<uint64_t> nanoseconds;
  std::atomic<int> error;
};

// As a profiler that is killed while its first code runs; a step that fails is the result.
int LeadAwayAndDie(pid_t pid) {
  const Result<RemoteProcess> opened = RemoteProcess::Open(pid);
  if (!opened.ok())
    return 1;
  const RemoteProcess& process = opened.value();
  Result<CodeCave> cave = FindCodeCave(process, process.Maps());
  Result<TracedThread> borrowed = BorrowThread(process);
  if (!cave.ok() || !borrowed.ok())
    return 2;
  TracedThread& thread = borrowed.value();
  const std::optional<uint64_t> mask = thread.context().SignalMask();
  if (!mask)
    return 3;
  // It maps nothing, as there is nothing to be mapped.
  const std::vector<uint8_t> stub =
      MakeStub({.hold_ticks = 1, .signal_mask = *mask}, thread.context().ResumeState());
  const user_regs_struct led = LedTo(thread.context().registers(), cave.value().address,
                                     StackPointer(thread.context().registers()));
  return process.Write(cave.value().address, stub.data(), stub.size()) &&
                 thread.context().SetRegisters(led) &&
                 thread.context().SetSignalMask(~uint64_t{0}) && thread.Continue()
             ? 0
             : 4;
}

// Number of the system call that it sleeps in; -1: in none until the deadline.
long AwaitSleep(pid_t pid) {
  const uint64_t deadline = MonotonicNs() + kDeadlineNs;
  while (MonotonicNs() < deadline) {
    const std::string text = ReadProcFile(ProcPath(pid, "syscall"), 256);
    char* end = nullptr;
    const long number = strtol(text.c_str(), &end, 10);
    if (end != text.c_str() && number >= 0)
      return number;
    SleepNs(1'000'000);
  }
  return -1;
}

TEST(SleeperTest, WhoeverIsNotPutBackSleepsOn) {
  void* const memory = mmap(nullptr, sizeof(Slept), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const slept = static_cast<Slept*>(memory);
  const pid_t sleeper = fork();
  if (sleeper == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const timespec time{.tv_sec = kSleepNs / 1'000'000'000, .tv_nsec = 0};
    const uint64_t begin = MonotonicNs();
    slept->error = syscall(SYS_nanosleep, &time, nullptr) == 0 ? 0 : errno;
    slept->nanoseconds = MonotonicNs() - begin;
    _exit(0);
  }
  ASSERT_EQ(AwaitSleep(sleeper), SYS_nanosleep);
  // The second one finds it in the call that the first one has left it in.
  for (int i = 0; i < 2; ++i) {
    const pid_t profiler = fork();
    if (profiler == 0)
      _exit(LeadAwayAndDie(sleeper));
    int status = 0;
    ASSERT_EQ(waitpid(profiler, &status, 0), profiler);
    ASSERT_EQ(status, 0);
    EXPECT_EQ(AwaitSleep(sleeper), SYS_restart_syscall) << i;
  }
  int status = 0;
  ASSERT_EQ(waitpid(sleeper, &status, 0), sleeper);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(slept->error, 0);
  EXPECT_GE(slept->nanoseconds, kSleepNs);
  munmap(memory, sizeof(Slept));
}

}  // namespace
}  // namespace heapprofd
