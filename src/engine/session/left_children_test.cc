#include "engine/session/left_children.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

// A target that has ended, and a child of it that still has its memory.
class Orphan {
 public:
  Orphan() {
    ClientBlock& client = made_.client();
    client.ring.fork_slot_count.store(1);
    client.fork_slots[0].slot.thread_pointer.store(kForkSlotOwned | (INT32_MAX - 1));
    child_ = mmap(nullptr, sizeof(ClientBlock), PROT_READ | PROT_WRITE, MAP_SHARED,
                  made_.memory().client_fd(), 0);
    made_.target().ReleaseRecorder();
  }

  ~Orphan() { End(); }

  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;

  Target& target() { return made_.target(); }

  // As the child does.
  RingHeader& ring() { return static_cast<ClientBlock*>(child_)->ring; }

  void End() {
    if (child_ != MAP_FAILED)
      munmap(child_, sizeof(ClientBlock));
    child_ = MAP_FAILED;
  }

 private:
  TestTarget made_;
  void* child_;
};

TEST(LeftChildrenTest, OneThatIsNoTargetAnyMoreIsNotLookedAt) {
  ProgramWatch programs;
  LeftChildren left(&programs);
  Orphan stays;
  {
    Orphan goes;
    EXPECT_EQ(left.Add(&goes.target(), {}), "");
    EXPECT_EQ(left.Add(&stays.target(), {}), "");
    left.Forget(&goes.target());
  }
  left.Look();
  ASSERT_EQ(left.size(), 1u);
  left.ForEach([&stays](const Target& target) { EXPECT_EQ(&target, &stays.target()); });
}

TEST(LeftChildrenTest, TheyAreLookedAfterUntilTheyHaveEnded) {
  Orphan orphan;
  ASSERT_TRUE(orphan.target().children().are_left());
  ProgramWatch programs;
  LeftChildren left(&programs);
  EXPECT_EQ(left.Add(&orphan.target(), {}), "");
  left.Look();
  EXPECT_EQ(left.size(), 1u);
  orphan.End();
  const uint64_t deadline = MonotonicNs() + 60'000'000'000;
  while (left.size() > 0 && MonotonicNs() < deadline)
    left.Look();
  EXPECT_EQ(left.size(), 0u);
  EXPECT_FALSE(orphan.target().children().are_left());
}

TEST(LeftChildrenTest, ThoseThatCannotAskForASessionMeanwhileAreNamed) {
  Orphan ends;
  Orphan goes_on;
  ProgramWatch programs;
  LeftChildren left(&programs);
  for (Orphan* orphan : {&ends, &goes_on}) {
    orphan->ring().unreached_children.store(3);
    left.Add(&orphan->target(), orphan->target().children().unprofiled());
  }
  ends.End();
  const uint64_t deadline = MonotonicNs() + 60'000'000'000;
  while (left.size() > 1 && MonotonicNs() < deadline)
    left.Look();
  ASSERT_EQ(programs.Unrecorded().size(), 1u);
  EXPECT_EQ(programs.Unrecorded()[0].reason, UnrecordedReason::kOutOfReach);
  EXPECT_EQ(programs.Unrecorded()[0].count, 3u);
  EXPECT_EQ(programs.Unrecorded()[0].names,
            std::vector{ends.target().profile().process.cmdline[0]});
  left.LeaveAll();
  EXPECT_EQ(programs.Unrecorded()[0].count, 6u);
}

TEST(LeftChildrenTest, WhatHasBeenNamedIsNotNamedAgain) {
  Orphan orphan;
  orphan.ring().unreached_children.store(3);
  ProgramWatch programs;
  LeftChildren left(&programs);
  left.Add(&orphan.target(), {0, 2, 0});
  left.LeaveAll();
  ASSERT_EQ(programs.Unrecorded().size(), 1u);
  EXPECT_EQ(programs.Unrecorded()[0].count, 1u);
}

TEST(LeftChildrenTest, AtTheEndNobodyIsLeft) {
  Orphan orphan;
  ProgramWatch programs;
  LeftChildren left(&programs);
  left.Add(&orphan.target(), {});
  left.LeaveAll();
  EXPECT_EQ(left.size(), 0u);
  EXPECT_FALSE(orphan.target().children().are_left());
}

TEST(LeftChildrenTest, OfTooManyTheEarliestAreLeftAndThatIsSaidOnce) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 16;  // room for two
  std::vector<std::string> said;
  std::vector<std::unique_ptr<Orphan>> orphans(4);
  for (std::unique_ptr<Orphan>& orphan : orphans)
    orphan = std::make_unique<Orphan>();
  ProgramWatch programs;
  LeftChildren left(&programs);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (const std::unique_ptr<Orphan>& orphan : orphans)
    said.push_back(left.Add(&orphan->target(), {}));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(left.size(), 2u);
  EXPECT_FALSE(orphans[0]->target().children().are_left());
  EXPECT_TRUE(orphans[3]->target().children().are_left());
  EXPECT_EQ(said[0] + said[1] + said[3], "");
  EXPECT_NE(said[2].find("more than 2 processes have ended"), std::string::npos)
      << said[2];
}

}  // namespace
}  // namespace heapprofd
