// Commands that are run for what they print.
#include "cli/run_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/scoped_fd.h"
#include "base/test_limits.h"

namespace heapprofd {
namespace {

std::string ErrorOfRunning(const std::vector<std::string>& command,
                           const Impatience& impatience = {}) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  return RunCommand(command, mask, impatience).status().message();
}

class RunCommandTest : public testing::Test {
 protected:
  RunCommandTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }

  ~RunCommandTest() override { std::filesystem::remove_all(folder_); }

  // A script whose first line is this one.
  std::string Script(const std::string& first_line) const {
    std::string path = folder_ + "/script";
    std::ofstream(path) << first_line << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  std::string folder_ = testing::TempDir() + "/run_command_test.XXXXXX";
};

TEST_F(RunCommandTest, OneThatIsNotThereIsNotInstalled) {
  EXPECT_EQ(ErrorOfRunning({"/nonexistent/adb"}),
            "cannot run /nonexistent/adb: it is not installed");
}

TEST_F(RunCommandTest, OneThatIsThereAndCannotBeRunIsNotMissing) {
  EXPECT_EQ(ErrorOfRunning({"/"}),
            "cannot run /: Permission denied; check that it is an executable file");
  const std::string script = Script("#!/no/such/interpreter");
  EXPECT_EQ(ErrorOfRunning({script}),
            "cannot run " + script +
                ": its interpreter /no/such/interpreter does not "
                "exist; install that");
}

// The kernel's answer is that of a folder that may not be searched, also for root.
TEST_F(RunCommandTest, OneThatIsInNoFolderOfPathIsNotInstalled) {
  std::filesystem::create_directory(folder_ + "/script");
  const std::string path = getenv("PATH");
  setenv("PATH", folder_.c_str(), 1);
  EXPECT_EQ(ErrorOfRunning({"script"}), "cannot run script: it is not installed");
  std::filesystem::remove(folder_ + "/script");
  std::ofstream(folder_ + "/script") << "no program";
  EXPECT_EQ(ErrorOfRunning({"script"}),
            "cannot run script: Permission denied; check that it is an executable file");
  setenv("PATH", path.c_str(), 1);
}

TEST_F(RunCommandTest, AnExitCodeIsTheProgramsOwn) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  const Result<CommandResult> result = RunCommand({"sh", "-c", "exit 127"}, mask);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().exit_code, 127);
}

TEST_F(RunCommandTest, WhatIsSaidOnStandardErrorIsTakenWhereItIsWanted) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  Result<RunningCommand> running = RunningCommand::Start(
      {"sh", "-c", "echo out; echo error >&2"}, mask, {.with_errors = true});
  ASSERT_TRUE(running.ok());
  EXPECT_EQ(running.value().Await({}).value().output, "out\nerror");
}

TEST_F(RunCommandTest, WhetherItHasEndedIsKnownWithoutWaiting) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Result<RunningCommand> running =
      RunningCommand::Start({"sh", "-c", "read line <" + fifo}, mask);
  ASSERT_TRUE(running.ok());
  EXPECT_FALSE(running.value().HasEnded());
  std::ofstream(fifo) << "go\n";
  while (!running.value().HasEnded())
    usleep(1000);
  EXPECT_EQ(running.value().Await({}).value().exit_code, 0);
  EXPECT_TRUE(running.value().HasEnded());
}

TEST_F(RunCommandTest, OneThatDoesNotAnswerIsEnded) {
  EXPECT_EQ(ErrorOfRunning({"sleep", "1000"}, {.fd = -1, .is_over = [] { return true; }}),
            "cannot run sleep: it did not answer and was ended");
}

// As one on a network folder that hangs: whoever opens the file waits for its lease.
TEST_F(RunCommandTest, OneThatDoesNotEvenStartIsEnded) {
  const std::string script = Script("#!/bin/sh");
  signal(SIGIO, SIG_IGN);
  const ScopedFd file(open(script.c_str(), O_RDONLY | O_CLOEXEC));
  if (fcntl(file.get(), F_SETLEASE, F_WRLCK) != 0)
    GTEST_SKIP() << "no leases here";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(ErrorOfRunning({script}, {.fd = -1, .is_over = [] { return true; }}),
            "cannot run " + script + ": it did not answer and was ended");
  // The kernel breaks a lease after 45 seconds.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(RunCommandTest, WithoutDescriptorsNothingIsRun) {
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP() << "sanitizers need descriptors of their own";
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(ErrorOfRunning({"true"}),
            "cannot create a pipe: Too many open files; raise ulimit -n");
}

}  // namespace
}  // namespace heapprofd
