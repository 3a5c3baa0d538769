#include "symbolize/worker_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

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

TEST(WorkerPoolTest, ProgressIsToldWhileTasksRunAndWhenTheyAreDone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd read_end(ends[0]);
  const ScopedFd write_end(ends[1]);
  std::vector<size_t> told;
  RunAll(3,
         [&](size_t) {  // waits until its caller has been told that it runs
           char byte = 0;
           return std::string(read(read_end.get(), &byte, 1) == 1 ? "done" : "");
         },
         {.workers = 1, .on_progress = [&](size_t done) {
            if (told.empty() || told.back() != done) {
              EXPECT_EQ(write(write_end.get(), "x", 1), 1);
            }
            told.push_back(done);
          }});
  EXPECT_EQ(told.front(), 0u);
  EXPECT_EQ(told.back(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
}

TEST(WorkerPoolTest, WhoIsCancelledReturnsAtOnceWithWhatIsDone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const ScopedFd read_end(ends[0]);
  const ScopedFd write_end(ends[1]);
  std::vector<size_t> done;
  const bool is_complete = RunInWorkers(
      4,
      [](size_t index) {
        while (index > 0)
          pause();
        return std::string("done");
      },
      [&](size_t index, Result<std::string> result) {
        EXPECT_TRUE(result.ok());
        done.push_back(index);
        EXPECT_EQ(write(write_end.get(), "x", 1), 1);
      },
      {.workers = 2, .cancel_fd = read_end.get()});
  EXPECT_FALSE(is_complete);
  EXPECT_EQ(done, std::vector<size_t>{0});
}

TEST(WorkerPoolTest, WhatIsNotCancelledIsDoneAllTheSame) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const ScopedFd read_end(ends[0]);
  ScopedFd write_end(ends[1]);
  write_end.reset();  // cancelled before it has begun
  std::vector<size_t> done;
  const bool is_complete = RunInWorkers(
      4,
      [](size_t index) {
        while (index < 2)
          pause();
        return std::string("done");
      },
      [&](size_t index, const Result<std::string>& result) {
        EXPECT_TRUE(result.ok());
        done.push_back(index);
      },
      {.workers = 2, .cancel_fd = read_end.get(), .not_cancelled = 2});
  EXPECT_FALSE(is_complete);
  std::sort(done.begin(), done.end());
  EXPECT_EQ(done, (std::vector<size_t>{2, 3}));
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

TEST(WorkerPoolTest, WhatAWorkersWorkersAddIsWithinItsLimitUnlessTheyHaveTheirOwn) {
  for (const bool divides : {true, false}) {
    const auto results =
        RunAll(1,
               [divides](size_t) {
                 const std::string kept(size_t{200} << 20, 'x');
                 const WorkerLimits limits = {.memory_bytes = uint64_t{400} << 20,
                                              .divides_memory = divides};
                 const auto added = [&kept](size_t) {
                   return std::string(kept.size(), 'y').substr(0, 4);
                 };
                 return RunAll(1, added, limits).at(0).substr(0, 30);
               },
               {.memory_bytes = uint64_t{300} << 20});
    EXPECT_EQ(results.at(0), divides ? "error: the worker needed more " : "yyyy");
  }
}
#endif

TEST(WorkerPoolTest, AResultWithoutEndIsNotTaken) {
  const auto results =
      RunAll(2, [](size_t index) { return std::string(index == 0 ? 5000 : 4, 'x'); },
             {.result_bytes = 4096});
  EXPECT_EQ(results.at(0), "error: its result is too large");
  EXPECT_EQ(results.at(1), "xxxx");
}

// What a hostile file could make of its parser.
TEST(WorkerPoolTest, AWorkerWithoutRightsReachesNothingButItsFiles) {
  const ScopedFd given(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const ScopedFd other(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  const auto results = RunAll(
      5,
      [&](size_t index) {
        std::string text(4, '\0');
        switch (index) {
          case 0:
            return pread(given.get(), text.data(), 4, 0) == 4 ? text.substr(1) : "";
          case 1:
            return std::to_string(pread(other.get(), text.data(), 4, 0));
          case 2:
            return std::to_string(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
          case 3:
            return std::string(getuid() == 0 ? "root" : "somebody");
          default:
            return std::to_string(kill(getppid(), SIGKILL));
        }
      },
      {.workers = 1, .rights = WorkerRights::kNone, .kept_fds = {given.get()}});
  EXPECT_EQ(results.at(0), "ELF");
  EXPECT_EQ(results.at(1), "-1");
  EXPECT_EQ(results.at(2), "-1");
  EXPECT_EQ(results.at(3), "somebody");
  EXPECT_EQ(results.at(4), "error: the worker was killed by SIGSYS (Bad system call)");
}

TEST(WorkerPoolTest, AWorkerThatOpensFilesHasNoOtherPrivilege) {
  const auto results = RunAll(1,
                              [](size_t) {
                                const ScopedFd own(open("/proc/self/status", O_RDONLY));
                                std::string text(8192, '\0');
                                EXPECT_GT(pread(own.get(), text.data(), 8192, 0), 0);
                                return text.substr(0, text.find('\0'));
                              },
                              {.rights = WorkerRights::kToOpen});
  EXPECT_NE(results.at(0).find("NoNewPrivs:\t1\n"), std::string::npos);
  const std::string capabilities =
      results.at(0).substr(results.at(0).find("CapEff:\t") + 8, 16);
  // CAP_DAC_READ_SEARCH, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP
  EXPECT_EQ(std::stoull(capabilities, nullptr, 16) & ~uint64_t{0x1e4}, 0u);
}

TEST(WorkerPoolTest, AWorkerMayHaveWorkersThatEndWithIt) {
  const auto results =
      RunAll(1,
             [](size_t) {
               std::string text;
               RunInWorkers(
                   2, [](size_t index) { return std::string(index == 0 ? "a" : "b"); },
                   [&](size_t, Result<std::string> result) { text += result.value(); },
                   {.workers = 1, .rights = WorkerRights::kNone});
               return text;
             },
             {.rights = WorkerRights::kToOpen});
  EXPECT_EQ(results.at(0), "ab");
}

}  // namespace
}  // namespace heapprofd
