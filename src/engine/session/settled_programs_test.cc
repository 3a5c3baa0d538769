#include "engine/session/settled_programs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/remote_process.h"

namespace heapprofd {
namespace {

TEST(SettledProgramsTest, AProgramSettlesAfterAWhileAndAnExecBeginsAnew) {
  int go[2] = {-1, -1};
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(go[1]);
    if (read(go[0], &byte, 1) == 0)
      execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  SettledPrograms settled;
  constexpr uint64_t kBegin = 1'000;
  EXPECT_FALSE(settled.Contains(child, kBegin));
  EXPECT_FALSE(settled.Contains(child, kBegin + SettledPrograms::kSettleNs - 1));
  EXPECT_TRUE(settled.Contains(child, kBegin + SettledPrograms::kSettleNs));

  const std::string before = ImageId(child);
  close(go[0]);
  close(go[1]);
  while (ImageId(child) == before)
    usleep(1000);
  constexpr uint64_t kExeced = kBegin + 2 * SettledPrograms::kSettleNs;
  EXPECT_FALSE(settled.Contains(child, kExeced));
  EXPECT_TRUE(settled.Contains(child, kExeced + SettledPrograms::kSettleNs));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace heapprofd
