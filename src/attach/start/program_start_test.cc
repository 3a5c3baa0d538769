#include "attach/start/program_start.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "attach/remote_process.h"
#include "attach/start/breakpoint.h"
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

// Whether the loader's code is as its file has it.
bool IsLoaderWhole(const RemoteProcess& process) {
  for (const MapEntry& map : process.Maps()) {
    if (!map.executable || map.path.find("/ld-") == std::string::npos)
      continue;
    std::string mapped(map.end - map.start, '\0');
    std::string file(mapped.size(), '\0');
    const ScopedFd fd(open(map.path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t size =
        pread(fd.get(), file.data(), file.size(), static_cast<off_t>(map.offset));
    return size > 0 && process.Read(map.start, mapped.data(), mapped.size()) &&
           mapped.compare(0, static_cast<size_t>(size), file, 0,
                          static_cast<size_t>(size)) == 0;
  }
  return false;
}

class ProgramStartTest : public testing::TestWithParam<TrapKind> {
 protected:
  void SetUp() override {
    if (GetParam() == TrapKind::kBreakpoint && !HaveBreakpoints())
      GTEST_SKIP() << "the processor never stops at breakpoints";
  }

  // Until it has become the program.
  void AwaitExec() {
    ASSERT_EQ(ptrace(PTRACE_SEIZE, starter_.pid(), 0, PTRACE_O_TRACEEXEC), 0);
    starter_.Start();
    int stopped = 0;
    ASSERT_EQ(thread_.WaitForEvent(may_wait_, &stopped), TracedThread::Wait::kStopped);
    ASSERT_EQ(stopped >> 16, PTRACE_EVENT_EXEC);
    thread_.NoteStopped();
  }

  const Starter starter_;
  TracedThread thread_{starter_.pid()};
  const std::function<bool()> may_wait_ = [deadline = MonotonicNs() + kPatienceNs] {
    return MonotonicNs() < deadline;
  };
};

TEST_P(ProgramStartTest, AProgramStopsWhenItsLibrariesAreThereAndNothingOfItHasRun) {
  ASSERT_NO_FATAL_FAILURE(AwaitExec());
  const Result<RemoteProcess> process = RemoteProcess::Open(starter_.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const Status status = RunToStart(process.value(), may_wait_, &thread_, GetParam());
  ASSERT_TRUE(status.ok()) << status.message();
  const std::vector<MapEntry> maps = process.value().Maps();
  EXPECT_TRUE(std::ranges::any_of(maps, [](const MapEntry& entry) {
    return entry.executable && entry.path.find("/libc.") != std::string::npos;
  }));
  // Not even the first allocation.
  EXPECT_TRUE(std::ranges::none_of(
      maps, [](const MapEntry& entry) { return entry.path == "[heap]"; }));
  EXPECT_TRUE(IsLoaderWhole(process.value()));
  thread_.Release();
  int status_at_end = 0;
  ASSERT_EQ(waitpid(starter_.pid(), &status_at_end, 0), starter_.pid());
  EXPECT_TRUE(WIFEXITED(status_at_end) && WEXITSTATUS(status_at_end) == 0);
}

TEST_P(ProgramStartTest, AProgramThatIsGivenUpHasNothingOfUs) {
  ASSERT_NO_FATAL_FAILURE(AwaitExec());
  const Result<RemoteProcess> process = RemoteProcess::Open(starter_.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const auto gives_up = [asked = 0]() mutable { return ++asked < 3; };
  const Status status = RunToStart(process.value(), gives_up, &thread_, GetParam());
  EXPECT_NE(status.message().find("did not come to an end with loading its libraries"),
            std::string::npos)
      << status.message();
  EXPECT_TRUE(IsLoaderWhole(process.value()));
  thread_.Release();
  int status_at_end = 0;
  ASSERT_EQ(waitpid(starter_.pid(), &status_at_end, 0), starter_.pid());
  EXPECT_TRUE(WIFEXITED(status_at_end) && WEXITSTATUS(status_at_end) == 0);
}

TEST_P(ProgramStartTest, AProgramThatEndsMeanwhileIsTold) {
  ASSERT_NO_FATAL_FAILURE(AwaitExec());
  const Result<RemoteProcess> process = RemoteProcess::Open(starter_.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  kill(starter_.pid(), SIGKILL);
  siginfo_t info{};  // on its way there its memory is gone before it is
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(starter_.pid()), &info, WEXITED | WNOWAIT),
            0);
  const Status status = RunToStart(process.value(), may_wait_, &thread_, GetParam());
  EXPECT_NE(status.message().find("it ended before it had started"), std::string::npos)
      << status.message();
}

INSTANTIATE_TEST_SUITE_P(Traps,
                         ProgramStartTest,
                         testing::Values(TrapKind::kBreakpoint, TrapKind::kCall));

TEST(StartTrapTest, AFunctionThatDoesSomethingIsLeftAlone) {
  const Result<RemoteProcess> self = RemoteProcess::Open(getpid());
  ASSERT_TRUE(self.ok()) << self.status().message();
  TracedThread thread(getpid());
  const auto function = reinterpret_cast<uint64_t>(&SetStartTrap);
  const Status status =
      SetStartTrap(TrapKind::kCall, self.value(), function, &thread).status();
  EXPECT_NE(status.message().find("its loader has no room for what stands in for one"),
            std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace heapprofd
