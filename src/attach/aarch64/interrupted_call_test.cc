// Sleeps that a stop has interrupted, of a thread that may have to go back by itself.
#include "attach/interrupted_call.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

namespace heapprofd {
namespace {

// As RestartedCall has them when the tracer lets the thread go on.
user_regs_struct Restarted() {
  user_regs_struct registers{};
  registers.regs[0] = 0x7000;
  registers.regs[8] = SYS_restart_syscall;
  registers.pc = 0x1000;
  return registers;
}

TEST(InterruptedCallTest, ASleepBeginsAnewWhereTheKernelWouldEndIt) {
  WaitingCall futex{.number = SYS_futex};
  futex.arguments[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
  futex.arguments[3] = 0x7100;
  for (const WaitingCall& call : {WaitingCall{.number = SYS_nanosleep},
                                  WaitingCall{.number = SYS_clock_nanosleep}, futex}) {
    const user_regs_struct resume = ResumedElsewhere(call, Restarted());
    EXPECT_EQ(resume.regs[8], static_cast<uint64_t>(call.number));
    EXPECT_EQ(resume.regs[0], 0x7000u);
    EXPECT_EQ(resume.pc, 0x1000u);
  }
}

TEST(InterruptedCallTest, OtherCallsAreLeftAsTheyAre) {
  WaitingCall until{.number = SYS_clock_nanosleep};
  until.arguments[1] = TIMER_ABSTIME;
  for (const WaitingCall& call : {WaitingCall(), until})
    EXPECT_EQ(ResumedElsewhere(call, Restarted()).regs[8],
              static_cast<uint64_t>(SYS_restart_syscall));
  user_regs_struct reads{};
  reads.regs[8] = SYS_read;
  EXPECT_EQ(ResumedElsewhere({.number = SYS_nanosleep}, reads).regs[8],
            static_cast<uint64_t>(SYS_read));
}

}  // namespace
}  // namespace heapprofd
