#include "attach/stopped_process.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "attach/return_places.h"
#include "attach/thread/vfork_waiter.h"

namespace heapprofd {
namespace {

constexpr uint64_t kCode = 0x123400000;  // where a thread would come back to

void* Spin(void* ready) {
  std::array<volatile uint64_t, 8> frame{};
  frame[4] = kCode + 8;
  close(*static_cast<int*>(ready));
  while (frame[4] != 0) {
  }
  return nullptr;
}

// A process whose first thread has ended while another one runs.
pid_t StartHeadless() {
  std::array<int, 2> ready{};
  EXPECT_EQ(pipe(ready.data()), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_t thread;
    pthread_create(&thread, nullptr, Spin, &ready[1]);
    syscall(SYS_exit, 0);  // of this thread alone
  }
  close(ready[1]);
  char end = 0;
  EXPECT_EQ(read(ready[0], &end, 1), 0);
  close(ready[0]);
  while (!IsDead(pid, pid))
    usleep(100);
  return pid;
}

TEST(StoppedProcessTest, ReturnAddressesAreFoundAlsoWhenTheFirstThreadHasEnded) {
  const pid_t pid = StartHeadless();
  {
    const Result<RemoteProcess> process = RemoteProcess::Open(pid);
    ASSERT_TRUE(process.ok()) << process.status().message();
    const Result<StoppedProcess> stopped = StoppedProcess::Stop(process.value());
    ASSERT_TRUE(stopped.ok()) << stopped.status().message();
    EXPECT_TRUE(IsAnyInside(stopped.value().threads(), {{kCode, kCode + 16}}));
    EXPECT_FALSE(IsAnyInside(stopped.value().threads(), {{kCode + 16, kCode + 32}}));
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, __WALL);
}

TEST(StoppedProcessTest, AThreadThatDoesNotStopIsNamed) {
  const VforkWaiter waiter;
  const Result<RemoteProcess> process = RemoteProcess::Open(waiter.pid());
  ASSERT_TRUE(process.ok()) << process.status().message();
  const std::string number = std::to_string(waiter.pid());
  EXPECT_EQ(StoppedProcess::Stop(process.value()).status().message(),
            "cannot stop process " + number + ": its thread " + number +
                " did not stop in time (an uninterruptible sleep, or too much runs on "
                "this machine); try again later");
}

}  // namespace
}  // namespace heapprofd
