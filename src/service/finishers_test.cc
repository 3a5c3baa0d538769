#include "service/finishers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>

#include "base/clock.h"
#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLongNs = 60'000'000'000;

// Begins one that ends by itself, or not before SIGTERM; gives its number.
pid_t BeginOne(Finishers* finishers, bool waits) {
  std::array<int, 2> fds{};
  EXPECT_EQ(pipe(fds.data()), 0);
  ScopedFd ready(fds[0]);
  ScopedFd says(fds[1]);
  const Status status = finishers->Begin([&] {
    const pid_t pid = getpgrp();  // of which it is the leader
    EXPECT_EQ(write(says.get(), &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
    while (waits)
      pause();
  });
  EXPECT_TRUE(status.ok()) << status.message();
  pid_t pid = 0;
  EXPECT_EQ(read(ready.get(), &pid, sizeof(pid)), static_cast<ssize_t>(sizeof(pid)));
  EXPECT_NE(pid, getpgrp());
  return pid;
}

TEST(FinishersTest, ThoseThatHaveEndedAreForgotten) {
  Finishers finishers;
  BeginOne(&finishers, /*waits=*/false);
  BeginOne(&finishers, /*waits=*/false);
  EXPECT_EQ(finishers.count(), 2u);
  EXPECT_GT(finishers.MillisecondsToNext(), 0);
  finishers.AwaitAll(MonotonicNs() + kLongNs);
  EXPECT_EQ(finishers.count(), 0u);
  EXPECT_EQ(finishers.MillisecondsToNext(), -1);
}

TEST(FinishersTest, OneThatWorksIsLeftAlone) {
  Finishers finishers;
  const pid_t pid = BeginOne(&finishers, /*waits=*/true);
  finishers.Reap();
  EXPECT_EQ(finishers.count(), 1u);
  EXPECT_EQ(kill(pid, 0), 0);
  finishers.AwaitAll(MonotonicNs());
}

TEST(FinishersTest, AfterTheDeadlineTheyAreToldToEnd) {
  Finishers finishers;
  BeginOne(&finishers, /*waits=*/true);
  finishers.AwaitAll(MonotonicNs());
  EXPECT_EQ(finishers.count(), 0u);
}

}  // namespace
}  // namespace heapprofd
