// With the strictest filter that there is: whoever makes another call than read, write and
// exit is killed.
#include "attach/thread/seccomp_filters.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <array>
#include <optional>
#include <string>

#include "attach/thread/test_process.h"

namespace heapprofd {
namespace {

class SeccompFiltersTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(pipe_.data()), 0);
    process_.emplace([this] {
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
      char byte = 0;
      (void)!read(pipe_[0], &byte, 1);
      syscall(SYS_getpid);
      syscall(SYS_exit, 0);
    });
    while (!IsUnderSeccomp(process_->pid()))
      usleep(100);
  }

  ~SeccompFiltersTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }

  // How it ends, of waitpid(2), when it makes its call.
  int End() {
    EXPECT_EQ(write(pipe_[1], "x", 1), 1);
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(process_->pid()), &info, WEXITED | WNOWAIT),
              0);
    return info.si_code;
  }

  std::array<int, 2> pipe_{};
  std::optional<TestProcess> process_;
};

TEST_F(SeccompFiltersTest, WhoeverIsNotTracedIsPunished) {
  EXPECT_EQ(End(), CLD_KILLED);
}

}  // namespace
}  // namespace heapprofd
