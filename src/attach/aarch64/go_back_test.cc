// A thread that goes back by itself (rt/aarch64/go_back.h) has every register and its
// signals as they were.
#include "rt/aarch64/go_back.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "rt/resume_registers.h"

// hpd_test_go_back(end of memory, registers, signal mask). It comes to hpd_test_landed,
// which puts all registers into the memory that sp is the begin of, takes that for a stack,
// and ends in HpdTestLanded.
asm(".text\n"
    ".globl hpd_test_go_back, hpd_test_landed\n"
    "hpd_test_go_back:\n"
    "mov x9, x0\n"
    "mov x10, x1\n"
    "mov x11, x2\n"
    "fmov d8, #1.5\n"  // not touched, as all of them
    HPD_GO_BACK
    "hpd_test_landed:\n"
    "stp x0, x1, [sp]\nstp x2, x3, [sp, #16]\nstp x4, x5, [sp, #32]\n"
    "stp x6, x7, [sp, #48]\nstp x8, x9, [sp, #64]\nstp x10, x11, [sp, #80]\n"
    "stp x12, x13, [sp, #96]\nstp x14, x15, [sp, #112]\nstp x16, x17, [sp, #128]\n"
    "stp x18, x19, [sp, #144]\nstp x20, x21, [sp, #160]\nstp x22, x23, [sp, #176]\n"
    "stp x24, x25, [sp, #192]\nstp x26, x27, [sp, #208]\nstp x28, x29, [sp, #224]\n"
    "mrs x0, nzcv\n"
    "stp x30, x0, [sp, #240]\n"
    "str d8, [sp, #256]\n"
    "mov x0, sp\n"
    "b HpdTestLanded\n");

extern "C" {
[[noreturn]] void hpd_test_go_back(void* memory_end,
                                   const heapprofd::rt::ResumeRegisters* registers,
                                   uint64_t signals);
extern const char hpd_test_landed[];
[[noreturn]] void HpdTestLanded(const uint64_t* found);
}

namespace heapprofd {
namespace {

constexpr uint64_t kFlags = 0xa0000000;  // N and C
constexpr uint64_t kBlocked = 1u << (SIGUSR1 - 1);

std::array<char, 65536> g_alternate;  // the stack for signals
bool g_is_filtered = false;
rt::ResumeRegisters g_registers;

uint64_t Wanted(uint64_t number) {
  const bool is_spent = number == 0 && g_registers.sleeps_on != 0;
  return is_spent ? g_registers.pc : (number + 1) * 0x0101010101010101;
}

// The first value that is wrong, from 1; 0: none.
int FindWrong(const uint64_t* found) {
  for (uint64_t i = 0; i < 31; ++i) {
    if (found[i] != Wanted(i))
      return static_cast<int>(i) + 1;
  }
  constexpr uint64_t kOneAndAHalf = 0x3ff8000000000000;
  if (found[31] != kFlags)
    return 40;
  if (found[32] != kOneAndAHalf)
    return 41;
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  if (sigismember(&blocked, SIGUSR1) != 1 || sigismember(&blocked, SIGUSR2) != 0)
    return 42;
  stack_t alternate{};
  if (!g_is_filtered &&
      (sigaltstack(nullptr, &alternate) != 0 || alternate.ss_sp != g_alternate.data() ||
       alternate.ss_size != g_alternate.size()))
    return 43;
  return reinterpret_cast<uint64_t>(found) == g_registers.sp ? 0 : 44;
}

// As a filter of a program that sets up no stack for signals any more.
bool ForbidSigaltstack() {
  std::array<sock_filter, 4> code = {
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sigaltstack, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{.len = code.size(), .filter = code.data()};
  g_is_filtered = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
  return g_is_filtered;
}

// In the calling process. What lies in the memory looks like a stack for signals.
[[noreturn]] void GoBack(bool sleeps_on = false) {
  static std::array<uint64_t, 8192> stack;
  stack.fill(uint64_t{1} << 40);
  const stack_t alternate{
      .ss_sp = g_alternate.data(), .ss_flags = 0, .ss_size = g_alternate.size()};
  if (!g_is_filtered)
    sigaltstack(&alternate, nullptr);
  for (uint64_t i = 0; i < 31; ++i)
    g_registers.x[i] = Wanted(i);
  g_registers.sp = (reinterpret_cast<uint64_t>(&stack[7168]) + 15) & ~uint64_t{15};
  g_registers.pc = reinterpret_cast<uint64_t>(hpd_test_landed);
  g_registers.pstate = kFlags;
  g_registers.sleeps_on = sleeps_on ? 1 : 0;
  hpd_test_go_back(&stack[4096], &g_registers, kBlocked);
}

TEST(GoBackTest, AllRegistersAndTheSignalsAreAsTheyWere) {
  for (const bool sleeps_on : {false, true}) {
    const pid_t child = fork();
    if (child == 0)
      GoBack(sleeps_on);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    EXPECT_EQ(WEXITSTATUS(status), 0) << sleeps_on;
  }
}

// Who has suspended a filter, the profiler, is gone.
TEST(GoBackTest, NoCallIsMadeButTheOneThatEndsEveryHandlerOfSignals) {
  constexpr int kNoFilters = 99;
  const pid_t child = fork();
  if (child == 0) {
    if (!ForbidSigaltstack())
      _exit(kNoFilters);
    GoBack();
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == kNoFilters)
    GTEST_SKIP() << "no filters of system calls here (an emulator of programs has none)";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace heapprofd

void HpdTestLanded(const uint64_t* found) {
  _exit(heapprofd::FindWrong(found));
}
