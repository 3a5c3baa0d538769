#include "engine/session/process_family.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace heapprofd {
namespace {

// Ends when what it is given is closed.
pid_t ForkWaiting(int until_closed, int other_end) {
  const pid_t pid = fork();
  if (pid == 0) {
    close(other_end);
    char byte = 0;
    while (read(until_closed, &byte, 1) > 0) {
    }
    _exit(0);
  }
  return pid;
}

TEST(ProcessFamilyTest, ChildrenAreFoundWithTheTimeOfTheirStart) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t first = ForkWaiting(ends[0], ends[1]);
  const pid_t second = ForkWaiting(ends[0], ends[1]);
  const std::vector<Relative> family = FamilyOf(getpid(), [] {});
  close(ends[1]);
  waitpid(first, nullptr, 0);
  waitpid(second, nullptr, 0);
  close(ends[0]);
  for (const pid_t child : {first, second}) {
    const auto found = std::ranges::find_if(
        family, [child](const Relative& one) { return one.pid == child; });
    ASSERT_NE(found, family.end());
    EXPECT_GT(found->start, 0u);
  }
  EXPECT_TRUE(std::ranges::none_of(
      family, [](const Relative& one) { return one.pid == getpid(); }));
}

TEST(ProcessFamilyTest, AThreadLeadsToItsProcess) {
  std::vector<Relative> found;
  std::thread([&found] { found = ProcessesOf({gettid(), 0x7fffffff}, [] {}); }).join();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pid, getpid());
  EXPECT_GT(found[0].start, 0u);
  EXPECT_TRUE(ProcessesOf({}, [] {}).empty());
}

TEST(ProcessFamilyTest, AProcessThatIsGoneHasNone) {
  EXPECT_TRUE(FamilyOf(0x7fffffff, [] {}).empty());
}

}  // namespace
}  // namespace heapprofd
