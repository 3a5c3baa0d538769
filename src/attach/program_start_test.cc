#include "attach/program_start.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "attach/remote_process.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;

// Executes this program once it is told to, and is killed with this object.
class Starter {
 public:
  Starter() {
    if (pipe(pipe_.data()) != 0 || (pid_ = fork()) != 0)
      return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte = 0;
    (void)!read(pipe_[0], &byte, 1);
    execl("/proc/self/exe", "started", "--gtest_list_tests", nullptr);
    _exit(1);
  }

  ~Starter() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, __WALL);
    close(pipe_[0]);
    close(pipe_[1]);
  }

  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  pid_t pid() const { return pid_; }

  void Start() const { ASSERT_EQ(write(pipe_[1], "x", 1), 1); }

 private:
  std::array<int, 2> pipe_{};
  pid_t pid_ = 0;
};

TEST(ProgramStartTest, AProgramStopsWhenItsLibrariesAreThereAndNothingOfItHasRun) {
  const Starter starter;
  TracedThread thread(starter.pid());
  const uint64_t deadline = MonotonicNs() + kPatienceNs;
  const auto may_wait = [deadline] { return MonotonicNs() < deadline; };
  ASSERT_EQ(ptrace(PTRACE_SEIZE, starter.pid(), 0, PTRACE_O_TRACEEXEC), 0);
  starter.Start();
  int stopped = 0;
  ASSERT_EQ(thread.WaitForEvent(may_wait, &stopped), TracedThread::Wait::kStopped);
  ASSERT_EQ(stopped >> 16, PTRACE_EVENT_EXEC);
  thread.NoteStopped();
  const Result<RemoteProcess> process = RemoteProcess::Open(starter.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const Status status = RunToStart(process.value(), may_wait, &thread);
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<MapEntry> maps = process.value().Maps();
  EXPECT_TRUE(std::ranges::any_of(maps, [](const MapEntry& entry) {
    return entry.executable && entry.path.find("/libc.") != std::string::npos;
  }));
  // Not even the first allocation.
  EXPECT_TRUE(std::ranges::none_of(
      maps, [](const MapEntry& entry) { return entry.path == "[heap]"; }));
  thread.Release();
}

}  // namespace
}  // namespace heapprofd
