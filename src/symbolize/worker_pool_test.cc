#include "symbolize/worker_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

std::map<size_t, std::string> RunAll(size_t count,
                                     const WorkerTask& task,
                                     const WorkerLimits& limits = {}) {
  std::map<size_t, std::string> results;
  RunInWorkers(
      count, task,
      [&](size_t index, Result<std::string> result) {
        const std::string text =
            result.ok() ? result.value() : "error: " + result.status().message();
        EXPECT_TRUE(results.emplace(index, text).second) << index;
      },
      limits);
  return results;
}

TEST(WorkerPoolTest, EveryTaskHasItsResult) {
  const auto results = RunAll(50, [](size_t index) {
    return std::string(index * 10'000, static_cast<char>('a' + index % 26));
  });
  ASSERT_EQ(results.size(), 50u);
  for (const auto& [index, text] : results)
    EXPECT_EQ(text, std::string(index * 10'000, static_cast<char>('a' + index % 26)));
}

TEST(WorkerPoolTest, WithoutTasksNothingIsStarted) {
  EXPECT_TRUE(RunAll(0, [](size_t) { return std::string(); }).empty());
}

TEST(WorkerPoolTest, AFileTruncatedUnderItsReaderCostsThatTaskOnly) {
  const auto results = RunAll(5, [](size_t index) {
    if (index != 2)
      return std::string("fine");
    const ScopedFd file(memfd_create("short", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), 4096), 0);
    const auto* bytes = static_cast<const char*>(
        mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.get(), 0));
    EXPECT_EQ(ftruncate(file.get(), 0), 0);
    return std::string(1, *static_cast<const volatile char*>(bytes));
  });
  ASSERT_EQ(results.size(), 5u);
  for (const auto& [index, text] : results)
    EXPECT_EQ(text,
              index == 2 ? "error: the worker was killed by SIGBUS (Bus error)" : "fine");
}

TEST(WorkerPoolTest, ATaskThatDoesNotEndIsStopped) {
  const auto results = RunAll(2,
                              [](size_t index) {
                                for (volatile uint64_t spins = 0; index == 0;)
                                  spins = spins + 1;
                                return std::string("fine");
                              },
                              {.cpu_seconds = 1, .wall_seconds = 60});
  EXPECT_EQ(results.at(0), "error: the worker needed more than 1 seconds");
  EXPECT_EQ(results.at(1), "fine");
}

TEST(WorkerPoolTest, ATaskThatWaitsForEverIsStopped) {
  const auto results = RunAll(1,
                              [](size_t) {
                                pause();
                                return std::string("never");
                              },
                              {.cpu_seconds = 60, .wall_seconds = 1});
  EXPECT_EQ(results.at(0), "error: the worker took more than 1 seconds");
}

#ifndef __SANITIZE_ADDRESS__  // which brings an allocator without operator new's handler
TEST(WorkerPoolTest, ATaskThatNeedsTooMuchMemoryIsStopped) {
  const auto results = RunAll(
      2, [](size_t index) { return std::string(index == 0 ? size_t{1} << 30 : 4, 'x'); },
      {.memory_bytes = uint64_t{64} << 20});
  EXPECT_EQ(results.at(0), "error: the worker needed more than 64 MiB of memory");
  EXPECT_EQ(results.at(1), "xxxx");
}
#endif

TEST(WorkerPoolTest, AResultWithoutEndIsNotTaken) {
  const auto results =
      RunAll(2, [](size_t index) { return std::string(index == 0 ? 5000 : 4, 'x'); },
             {.result_bytes = 4096});
  EXPECT_EQ(results.at(0), "error: its result is too large");
  EXPECT_EQ(results.at(1), "xxxx");
}

}  // namespace
}  // namespace heapprofd
