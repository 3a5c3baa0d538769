// Sleeps that a stop has interrupted, of a thread that may have to go back by itself.
#include "attach/thread/interrupted_call.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

namespace heapprofd {
namespace {

constexpr uint64_t kSvc = 0x1000;

WaitingCall CallOf(int64_t number) {
  return {.number = number, .code = kSvc + 4};
}

// As the kernel, or RestartedCall, has them when the thread is to go on.
user_regs_struct Restarted() {
  user_regs_struct registers{};
  registers.regs[0] = 0x7000;
  registers.regs[8] = SYS_restart_syscall;
  registers.pc = kSvc;
  return registers;
}

TEST(InterruptedCallTest, ASleepGoesOnThatIsKnownToWaitAtThatPlace) {
  for (const int64_t number : {SYS_nanosleep, SYS_restart_syscall})
    EXPECT_EQ(ResumedElsewhere(CallOf(number), Restarted(), false).sleeps_on, 1u);
  user_regs_struct elsewhere = Restarted();
  elsewhere.pc += 4;  // the call has ended, the number is still there
  EXPECT_EQ(ResumedElsewhere(CallOf(SYS_nanosleep), elsewhere, false).sleeps_on, 0u);
  EXPECT_EQ(ResumedElsewhere(WaitingCall(), Restarted(), false).sleeps_on, 0u);
  user_regs_struct reads = Restarted();
  reads.regs[8] = SYS_read;
  EXPECT_EQ(ResumedElsewhere(CallOf(SYS_read), reads, false).sleeps_on, 0u);
}

TEST(InterruptedCallTest, UnderAFilterASleepBeginsAnewWhereTheKernelWouldEndIt) {
  WaitingCall futex = CallOf(SYS_futex);
  futex.arguments[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
  futex.arguments[3] = 0x7100;
  for (const WaitingCall& call :
       {CallOf(SYS_nanosleep), CallOf(SYS_clock_nanosleep), futex}) {
    const rt::ResumeRegisters resume = ResumedElsewhere(call, Restarted(), true);
    EXPECT_EQ(resume.x[8], static_cast<uint64_t>(call.number));
    EXPECT_EQ(resume.x[0], 0x7000u);
    EXPECT_EQ(resume.pc, kSvc);
    EXPECT_EQ(resume.sleeps_on, 0u);
  }
}

TEST(InterruptedCallTest, UnderAFilterOtherCallsAreLeftAsTheyAre) {
  WaitingCall until = CallOf(SYS_clock_nanosleep);
  until.arguments[1] = TIMER_ABSTIME;
  for (const WaitingCall& call : {WaitingCall(), until, CallOf(SYS_restart_syscall)})
    EXPECT_EQ(ResumedElsewhere(call, Restarted(), true).x[8],
              static_cast<uint64_t>(SYS_restart_syscall));
  user_regs_struct reads = Restarted();
  reads.regs[8] = SYS_read;
  EXPECT_EQ(ResumedElsewhere(CallOf(SYS_nanosleep), reads, true).x[8],
            static_cast<uint64_t>(SYS_read));
}

}  // namespace
}  // namespace heapprofd
