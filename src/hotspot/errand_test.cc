#include "hotspot/errand.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

#include "base/clock.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;

Errand As(std::function<Result<std::string>(const Sender&)> run) {
  return {.user = getuid(), .group = getgid(), .kept = {}, .run = std::move(run)};
}

ErrandWait Patient() {
  return {.progress = [] { return uint64_t{0}; },
          .patience_ns = kPatienceNs,
          .show = [](const std::string&) {}};
}

TEST(ErrandTest, ItsResultComesBack) {
  const Result<std::string> result =
      RunErrand(As([](const Sender&) { return std::string("done"); }), Patient());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), "done");
}

TEST(ErrandTest, ItsErrorComesBack) {
  const Result<std::string> result =
      RunErrand(As([](const Sender&) { return Status(StatusCode::kIo, "no such luck"); }),
                Patient());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "no such luck");
}

TEST(ErrandTest, WhatIsBeingDoneIsShown) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd read_end(ends[0]);
  const ScopedFd write_end(ends[1]);
  Errand errand = As([&](const Sender& sender) {
    sender.Tell("half of it");
    const Status status = sender.Await(read_end.get(), POLLIN, Sender::kAsLong);
    return status.ok() ? Result<std::string>(std::string()) : status;
  });
  errand.kept = {read_end.get()};
  ErrandWait wait = Patient();
  wait.show = [&](const std::string& stage) {
    if (stage == "half of it")
      (void)write(write_end.get(), "x", 1);
  };
  EXPECT_TRUE(RunErrand(errand, wait).ok());
}

TEST(ErrandTest, AnErrandThatDoesNotGoOnIsGivenUp) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd read_end(ends[0]);
  ScopedFd write_end(ends[1]);
  Errand errand = As([](const Sender& sender) {
    sender.Tell("thinking");
    return sender.Await(-1, 0, Sender::kAsLong);
  });
  errand.kept = {write_end.get()};
  ErrandWait wait = Patient();
  wait.patience_ns = 1;
  const Result<std::string> result = RunErrand(errand, wait);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kTryAgain);
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(read(read_end.get(), &byte, 1), 0) << "the messenger has it no longer";
}

TEST(ErrandTest, OneThatIsNotWantedAnyLongerEnds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd stop(ends[0]);
  close(ends[1]);
  ErrandWait wait = Patient();
  wait.stop_fd = stop.get();
  const Result<std::string> result = RunErrand(
      As([](const Sender& sender) { return sender.Await(-1, 0, Sender::kAsLong); }),
      wait);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "interrupted");
}

TEST(ErrandTest, AMessengerThatIsKilledIsNoticed) {
  const Result<std::string> result = RunErrand(As([](const Sender&) {
                                                 raise(SIGKILL);
                                                 return std::string("alive");
                                               }),
                                               Patient());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(),
            "the process that asks was ended by signal 9 (Killed)");
}

// Whoever sends it may be killed at any time: it sees that, and can clean up.
TEST(ErrandTest, ItOutlivesItsSenderToCleanUp) {
  std::array<int, 2> cleaned{};
  ASSERT_EQ(pipe2(cleaned.data(), O_CLOEXEC), 0);
  const ScopedFd read_end(cleaned[0]);
  ScopedFd write_end(cleaned[1]);
  const pid_t sender_pid = fork();
  if (sender_pid == 0) {
    Errand errand = As([&](const Sender& sender) -> Result<std::string> {
      kill(getppid(), SIGKILL);
      const Status status = sender.Await(-1, 0, Sender::kAsLong);
      (void)write(write_end.get(), "c", 1);
      return status;
    });
    errand.kept = {write_end.get()};
    (void)RunErrand(errand, Patient());
    _exit(0);
  }
  write_end.reset();
  char byte = 0;
  EXPECT_EQ(read(read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'c');
  waitpid(sender_pid, nullptr, 0);
}

TEST(ErrandTest, RootBecomesTheUser) {
  if (geteuid() != 0)
    GTEST_SKIP() << "needs root";
  Errand errand = As([](const Sender&) {
    return StatusField(ReadProcFile("/proc/self/status"), "Uid") + " " +
           StatusField(ReadProcFile("/proc/self/status"), "CapEff");
  });
  errand.user = errand.group = 61003;
  const Result<std::string> result = RunErrand(errand, Patient());
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value(), "61003\t61003\t61003\t61003 0000000000000000");
}

}  // namespace
}  // namespace heapprofd
