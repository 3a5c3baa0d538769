#include "engine/target/thread_table.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

namespace heapprofd {
namespace {

class ThreadTableTest : public testing::Test {
 protected:
  ThreadTableTest() {
    profile_.process.pid = getpid();
    pthread_getname_np(pthread_self(), name_, sizeof(name_));
  }

  ~ThreadTableTest() override { pthread_setname_np(pthread_self(), name_); }

  static void Rename(const char* name) { pthread_setname_np(pthread_self(), name); }

  char name_[16] = {};
  TargetProfile profile_;
  const uint32_t own_tid_ = static_cast<uint32_t>(gettid());
};

TEST_F(ThreadTableTest, ThreadsAreNumberedInTheOrderOfTheirFirstSamples) {
  ThreadTable table(&profile_, /*has_names=*/false);
  EXPECT_EQ(table.Intern(70), 1u);
  EXPECT_EQ(table.Intern(60), 2u);
  EXPECT_EQ(table.Intern(70), 1u);
  EXPECT_EQ(table.Intern(0), kUnknownThread);
  EXPECT_EQ(table.Intern(60), 2u);
  ASSERT_EQ(profile_.threads.size(), 3u);
  EXPECT_EQ(profile_.threads[1].tid, 70u);
  EXPECT_EQ(profile_.threads[2].tid, 60u);
  EXPECT_EQ(profile_.threads[kUnknownThread].tid, 0u);
}

TEST_F(ThreadTableTest, ANameThatIsGivenLateIsSeen) {
  ThreadTable table(&profile_, /*has_names=*/true);
  Rename("before");
  const ThreadId id = table.Intern(own_tid_);
  EXPECT_EQ(profile_.threads[id].name, "before");
  Rename("late\n\x80");
  table.Intern(own_tid_);
  EXPECT_EQ(profile_.threads[id].name, "late_\xef\xbf\xbd");
}

TEST_F(ThreadTableTest, AThreadThatHasEndedKeepsItsName) {
  ThreadTable table(&profile_, /*has_names=*/true);
  Rename("worker");
  const ThreadId id = table.Intern(own_tid_);
  profile_.process.pid = 0x7fffffff;  // nothing is found under this id
  table.Intern(own_tid_);
  EXPECT_EQ(profile_.threads[id].name, "worker");
}

TEST_F(ThreadTableTest, ThreadsBeyondTheLimitAreNotToldApart) {
  ThreadTable table(&profile_, /*has_names=*/false);
  for (uint32_t tid = 1; tid < ThreadTable::kMaxThreads; ++tid)
    ASSERT_EQ(table.Intern(tid), tid);
  EXPECT_EQ(table.Intern(1'000'000), kUnknownThread);
  EXPECT_EQ(table.Intern(5), 5u);
  EXPECT_EQ(profile_.threads.size(), ThreadTable::kMaxThreads);
}

}  // namespace
}  // namespace heapprofd
