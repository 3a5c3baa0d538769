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

// A child, the leader of its group, that ends by itself, or not before SIGTERM.
pid_t StartChild(bool waits) {
  std::array<int, 2> fds{};
  EXPECT_EQ(pipe(fds.data()), 0);
  ScopedFd ready(fds[0]);
  ScopedFd says(fds[1]);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    says.reset();
    while (waits)
      pause();
    _exit(0);
  }
  says.reset();
  char byte = 0;
  EXPECT_EQ(read(ready.get(), &byte, 1), 0);  // it leads its group
  return pid;
}

TEST(FinishersTest, ThoseThatHaveEndedAreForgotten) {
  Finishers finishers;
  finishers.Add(StartChild(/*waits=*/false));
  finishers.Add(StartChild(/*waits=*/false));
  EXPECT_EQ(finishers.count(), 2u);
  finishers.AwaitAll(MonotonicNs() + kLongNs);
  EXPECT_EQ(finishers.count(), 0u);
}

TEST(FinishersTest, OneThatWorksIsLeftAlone) {
  Finishers finishers;
  const pid_t pid = StartChild(/*waits=*/true);
  finishers.Add(pid);
  finishers.Reap();
  EXPECT_EQ(finishers.count(), 1u);
  EXPECT_EQ(kill(pid, 0), 0);
  finishers.AwaitAll(MonotonicNs());
}

TEST(FinishersTest, AfterTheDeadlineTheyAreToldToEnd) {
  Finishers finishers;
  finishers.Add(StartChild(/*waits=*/true));
  finishers.AwaitAll(MonotonicNs());
  EXPECT_EQ(finishers.count(), 0u);
}

}  // namespace
}  // namespace heapprofd
