// In processes under the strictest filter that there is: whoever makes another call than
// read, write and exit is killed.
#include "attach/thread/guided_thread.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <optional>
#include <string>

#include "attach/thread/seccomp_filters.h"
#include "attach/thread/test_process.h"
#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kGuidedPatienceNs = 10'000'000'000;
constexpr CodeRange kAnywhere{.begin = 0, .end = ~uint64_t{0}};

#if defined(__x86_64__)
// getppid(2), then for ever nothing.
[[gnu::naked]] void CallsOnce() {
  asm("mov $110, %eax\nsyscall\n1: pause\njmp 1b");
}

[[gnu::naked]] void Faults() {
  asm("ud2");
}
#else
[[gnu::naked]] void CallsOnce() {
  asm("mov x8, #173\nsvc #0\n1: yield\nb 1b");
}

[[gnu::naked]] void Faults() {
  asm("udf #0");
}
#endif

class GuidedThreadTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string obstacle = ObstacleToSuspendingFilters(); !obstacle.empty())
      GTEST_SKIP() << obstacle;
    ASSERT_EQ(pipe(pipe_.data()), 0);
    process_.emplace([this] {
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
      char byte = 0;
      (void)!read(pipe_[0], &byte, 1);
      syscall(SYS_exit, byte);
    });
    while (!IsUnderSeccomp(process_->pid()))
      usleep(100);
    thread_.emplace(process_->pid());
    ASSERT_TRUE(thread_->Seize());
    ASSERT_EQ(thread_->WaitForStop(MonotonicNs() + kGuidedPatienceNs),
              TracedThread::Wait::kStopped);
    EXPECT_TRUE(thread_->CanRunOurCalls());
  }

  ~GuidedThreadTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  GuidedThread LeadTo(void (*code)()) {
    GuidedThread guided = GuidedThread::Create(process_->pid(), &*thread_).value();
    const uint64_t stack = StackPointer(thread_->context().registers());
    EXPECT_TRUE(
        guided.LeadTo(reinterpret_cast<uint64_t>(code), stack - 4096, kAnywhere).ok());
    return guided;
  }

  // It does what it was about to, and has not been punished.
  void ExpectUnharmed() {
    thread_->Release();
    EXPECT_EQ(write(pipe_[1], "x", 1), 1);
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WEXITED | WNOWAIT),
              0);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, 'x');
  }

  std::array<int, 2> pipe_{};
  std::optional<TestProcess> process_;
  std::optional<TracedThread> thread_;
};

TEST_F(GuidedThreadTest, TheCallThatIsExpectedIsMadeAndNoneAfterIt) {
  GuidedThread guided = LeadTo(CallsOnce);
  const Result<int64_t> parent = guided.Expect({.number = SYS_getppid, .arguments = {}});
  ASSERT_TRUE(parent.ok()) << parent.status().message();
  EXPECT_EQ(parent.value(), getpid());
  EXPECT_TRUE(guided.RunUntil([] { return true; }).ok());
  EXPECT_EQ(guided.PutBack().message(), "");
  ExpectUnharmed();
}

TEST_F(GuidedThreadTest, AnotherCallIsNotMadeAndThatIsSaid) {
  GuidedThread guided = LeadTo(CallsOnce);
  const Status status = guided.Expect({.number = SYS_getpid, .arguments = {}}).status();
  EXPECT_NE(status.message().find(
                ": a thread of it made system call " + std::to_string(SYS_getppid) +
                " instead of " + std::to_string(SYS_getpid) +
                " in the profiler's code: something in the process has changed the code "
                "or the stack that the profiler runs there; look at what that process "
                "is"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(guided.PutBack().message(), "");
  ExpectUnharmed();
}

TEST_F(GuidedThreadTest, WhereNoCallIsExpectedNoneIsMade) {
  GuidedThread guided = LeadTo(CallsOnce);
  const Status status = guided.RunUntil([] { return false; });
  EXPECT_NE(status.message().find("a thread of it made system call"), std::string::npos)
      << status.message();
  EXPECT_EQ(guided.PutBack().message(), "");
  ExpectUnharmed();
}

TEST_F(GuidedThreadTest, OtherArgumentsAreAnotherCall) {
  GuidedThread guided = LeadTo(CallsOnce);
  EXPECT_FALSE(
      guided.Expect({.number = SYS_getppid, .arguments = {0xfeedf00ddead0001}}).ok());
  EXPECT_EQ(guided.PutBack().message(), "");
  ExpectUnharmed();
}

TEST_F(GuidedThreadTest, AFaultIsToldAndTheThreadPutBack) {
  GuidedThread guided = LeadTo(Faults);
  const Status status = guided.Expect({.number = SYS_getpid, .arguments = {}}).status();
  EXPECT_NE(status.message().find("a thread of it was stopped by a fault in the"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(guided.PutBack().message(), "");
  ExpectUnharmed();
}

// Neither after it was looked whether they can be suspended, nor after such a call.
TEST_F(GuidedThreadTest, OutsideOfOurCallsTheFilterIsInForce) {
  GuidedThread guided = LeadTo(CallsOnce);
  ASSERT_TRUE(guided.Expect({.number = SYS_getppid, .arguments = {}}).ok());
  ASSERT_EQ(guided.PutBack().message(), "");
  // What it makes by itself now is a call of its own.
  const user_regs_struct& registers = thread_->context().registers();
  ASSERT_TRUE(thread_->context().SetRegisters(
      LedTo(registers, reinterpret_cast<uint64_t>(&CallsOnce),
            StackPointer(registers) - 4096)));
  ASSERT_TRUE(thread_->Continue());
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WEXITED | WNOWAIT),
            0);
  EXPECT_EQ(info.si_code, CLD_KILLED);
}

}  // namespace
}  // namespace heapprofd
