#include "attach/thread/thread_context.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <array>
#include <string>

#include "attach/registers.h"
#include "attach/thread/test_process.h"
#include "base/clock.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr uint64_t kUsr1 = uint64_t{1} << (SIGUSR1 - 1);

// Waits with all signals let in; SIGUSR1 is blocked but there.
void SuspendWithoutUsr1() {
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  sigprocmask(SIG_SETMASK, &user, nullptr);
  sigset_t none;
  sigemptyset(&none);
  while (true)
    sigsuspend(&none);
}

[[noreturn]] void EndWithSeven() {
  while (true)
    syscall(SYS_exit_group, 7);
}

void AwaitCallOf(pid_t pid, long number) {
  const std::string wanted = std::to_string(number) + " ";
  while (!ReadProcFile(ProcPath(pid, "syscall")).starts_with(wanted))
    usleep(100);
}

void StopAsTracer(pid_t pid) {
  ASSERT_EQ(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
  ASSERT_EQ(waitpid(pid, nullptr, __WALL), pid);
}

TEST(ThreadContextTest, SignalsAreBlockedAsOutsideOfACallThatWaitsWithOthers) {
  const TestProcess process(SuspendWithoutUsr1);
  AwaitCallOf(process.pid(), SYS_rt_sigsuspend);
  StopAsTracer(process.pid());
  ThreadContext context(process.pid());
  ASSERT_TRUE(context.Fetch());
  EXPECT_EQ(context.SignalMask(), kUsr1);
  ASSERT_TRUE(context.SetSignalMask(kUsr1 << 1));
  EXPECT_EQ(context.SignalMask(), kUsr1 << 1);
}

TEST(ThreadContextTest, AThreadGoesOnWithTheRegistersThatItIsGiven) {
  constexpr uint64_t kRoom = 4096;  // bytes of its stack that are left alone
  const TestProcess process;
  StopAsTracer(process.pid());
  ThreadContext context(process.pid());
  ASSERT_TRUE(context.Fetch());
  const uint64_t stack = (StackPointer(context.registers()) - kRoom) & ~uint64_t{15};
  ASSERT_TRUE(context.SetRegisters(
      LedTo(context.registers(), reinterpret_cast<uint64_t>(&EndWithSeven), stack)));
  ASSERT_EQ(ptrace(PTRACE_DETACH, process.pid(), 0, 0), 0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_code, CLD_EXITED);
  EXPECT_EQ(info.si_status, 7);
}

TEST(ThreadContextTest, OfAThreadThatIsGoneThereIsNothing) {
  const TestProcess process;
  StopAsTracer(process.pid());
  kill(process.pid(), SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT), 0);
  ThreadContext context(process.pid());
  EXPECT_FALSE(context.Fetch());
  EXPECT_EQ(context.SignalMask(), std::nullopt);
  EXPECT_FALSE(context.SetRegisters({}));
}

// Of <linux/rseq.h>, in the child, at the same address as here.
struct Sequence {
  uint32_t version = 0;
  uint32_t flags = 0;
  uint64_t start = 0;
  uint64_t length = 0;
  uint64_t abort = 0;
};

Sequence g_sequence;

// Where the kernel is told of a thread's sequence; 0: it has no such area.
uint64_t AreaOfSequences(pid_t tid) {
  constexpr auto kGetConfiguration = static_cast<__ptrace_request>(0x420f);
  std::array<uint64_t, 3> configuration{};  // the first is its address
  return ptrace(kGetConfiguration, tid, sizeof(configuration), &configuration) > 0
             ? configuration[0]
             : 0;
}

TEST(ThreadContextTest, ARestartableSequenceIsKnownByWhereTheThreadStands) {
  const TestProcess process(SuspendWithoutUsr1);
  AwaitCallOf(process.pid(), SYS_rt_sigsuspend);
  StopAsTracer(process.pid());
  const Result<RemoteProcess> opened = RemoteProcess::Open(process.pid());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const RemoteProcess& memory = opened.value();
  const uint64_t area = AreaOfSequences(process.pid());
  if (area == 0)
    GTEST_SKIP() << "no restartable sequences here";
  ThreadContext context(process.pid());
  ASSERT_TRUE(context.Fetch());
  EXPECT_FALSE(context.IsInRestartableSequence(memory));
  const auto sequence_at = reinterpret_cast<uint64_t>(&g_sequence);
  ASSERT_TRUE(memory.WriteObject(area + sizeof(uint64_t), sequence_at));
  const uint64_t at = ProgramCounter(context.registers());
  ASSERT_TRUE(memory.WriteObject(sequence_at, Sequence{.start = at - 4, .length = 5}));
  EXPECT_TRUE(context.IsInRestartableSequence(memory));
  ASSERT_TRUE(memory.WriteObject(sequence_at, Sequence{.start = at - 4, .length = 4}));
  EXPECT_FALSE(context.IsInRestartableSequence(memory));
}

}  // namespace
}  // namespace heapprofd
