// Numbers of processes and threads are used again: one number, several rows.
#include "tables/process_index.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

class ProcessIndexTest : public testing::Test {
 protected:
  ImportedTrace trace_;
  ProcessIndex index_{&trace_};
};

TEST_F(ProcessIndexTest, APidIsOneProcessUntilAnotherFileBegins) {
  const uint32_t upid = index_.ProcessOf(7);
  EXPECT_EQ(index_.ProcessOf(7), upid);
  EXPECT_EQ(trace_.processes[upid].pid, 7);
  EXPECT_EQ(index_.ProcessOf(0), 0u);
  index_.BeginSource();
  EXPECT_NE(index_.ProcessOf(7), upid);
}

TEST_F(ProcessIndexTest, AnotherStartIsAnotherProcess) {
  const uint32_t first = index_.StartedProcessOf(7, 100);
  EXPECT_EQ(index_.StartedProcessOf(7, 100), first);
  const uint32_t second = index_.StartedProcessOf(7, 200);
  EXPECT_NE(second, first);
  EXPECT_EQ(index_.ProcessOf(7), second);
  EXPECT_EQ(trace_.processes[first].start_ts, 100);
}

TEST_F(ProcessIndexTest, AnExecMakesAnotherProcessOfThePid) {
  const uint32_t first = index_.ImageOf(7, 100);
  const uint32_t second = index_.ImageOf(7, 200);
  EXPECT_NE(first, second);
  EXPECT_EQ(index_.ImageOf(7, 100), first);
  EXPECT_EQ(trace_.processes[second].pid, 7);
}

TEST_F(ProcessIndexTest, ThreadsBelongToTheirProcess) {
  const uint32_t upid = index_.ProcessOf(7);
  EXPECT_EQ(index_.FindThread(7, upid), kNoId);
  const uint32_t main = index_.ThreadOf(7, upid);
  EXPECT_EQ(index_.FindThread(7, upid), main);
  EXPECT_TRUE(trace_.threads[main].is_main);
  EXPECT_NE(index_.ThreadOf(7, index_.ProcessOf(8)), main);
}

}  // namespace
}  // namespace heapprofd
