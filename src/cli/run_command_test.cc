// Commands that are run for what they print.
#include "cli/run_command.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "base/test_limits.h"

namespace heapprofd {
namespace {

std::string ErrorOf(const std::vector<std::string>& command,
                    const Impatience& impatience = {}) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  return RunCommand(command, mask, impatience).status().message();
}

TEST(RunCommandTest, OneThatIsNotThereIsNotInstalled) {
  EXPECT_EQ(ErrorOf({"/nonexistent/adb"}),
            "cannot run /nonexistent/adb: it is not installed");
}

TEST(RunCommandTest, OneThatDoesNotAnswerIsEnded) {
  EXPECT_EQ(ErrorOf({"sleep", "1000"}, {.fd = -1, .is_over = [] { return true; }}),
            "cannot run sleep: it did not answer and was ended");
}

TEST(RunCommandTest, WithoutDescriptorsNothingIsRun) {
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(ErrorOf({"true"}),
            "cannot create a pipe: Too many open files; raise ulimit -n");
}

}  // namespace
}  // namespace heapprofd
