#include "engine/session/missed_processes.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

ProcessDescription Process(int32_t pid) {
  ProcessDescription process;
  process.pid = pid;
  process.cmdline = {"prog"};
  return process;
}

TEST(MissedProcessesTest, AProcessOfAnotherSessionIsNotedOnce) {
  ProgramWatch programs;
  MissedProcesses missed(&programs);
  missed.NoteTaken(Process(7));
  missed.NoteTaken(Process(7));
  missed.NoteTaken(Process(8));
  ASSERT_EQ(missed.taken().size(), 2u);
  EXPECT_TRUE(missed.taken()[0]->rejected_concurrent);
  EXPECT_EQ(missed.taken()[0]->reason, "another session profiles this process");
  EXPECT_GT(missed.taken()[0]->process.start_ns, 0u);
  EXPECT_TRUE(programs.Unrecorded().empty());
}

TEST(MissedProcessesTest, TooManyAreCountedWithoutADescription) {
  constexpr int32_t kMost = 10'000;
  ProgramWatch programs;
  MissedProcesses missed(&programs);
  for (int32_t pid = 1; pid <= kMost + 2; ++pid)
    missed.NoteTaken(Process(pid));
  EXPECT_EQ(missed.taken().size(), static_cast<size_t>(kMost));
  ASSERT_EQ(programs.Unrecorded().size(), 1u);
  EXPECT_EQ(programs.Unrecorded()[0].reason, UnrecordedReason::kDeclined);
  EXPECT_EQ(programs.Unrecorded()[0].count, 2u);
}

}  // namespace
}  // namespace heapprofd
