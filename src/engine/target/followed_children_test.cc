#include "engine/target/followed_children.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/target/forked_children.h"

namespace heapprofd {
namespace {

constexpr uint64_t kOwner = kForkSlotOwned | (INT32_MAX - 1);  // nobody's number

class FollowedChildrenTest : public testing::Test {
 protected:
  FollowedChildrenTest() : memory_(SharedMemory::Create(64 * 1024).value()) {
    client().ring.counted_children.store(2);
    client().ring.fork_slot_count.store(1);
    client().fork_slots[0].slot.calls = 3;
  }

  ClientBlock& client() { return memory_->client(); }

  // As a child has it that goes on when its parent is gone.
  void* MapAsChild() {
    return mmap(nullptr, sizeof(ClientBlock), PROT_READ | PROT_WRITE, MAP_SHARED,
                memory_->client_fd(), 0);
  }

  std::unique_ptr<SharedMemory> memory_;
  ForkedChildren counted_;
};

TEST_F(FollowedChildrenTest, OnlyThoseThatAreWantedAreCounted) {
  FollowedChildren unwanted(/*is_wanted=*/false, &counted_);
  unwanted.Count(client());
  EXPECT_EQ(counted_.count, 0u);
  FollowedChildren wanted(/*is_wanted=*/true, &counted_);
  wanted.Count(client());
  EXPECT_EQ(counted_.count, 2u);
  EXPECT_EQ(counted_.alloc_calls, 3u);
}

TEST_F(FollowedChildrenTest, WithoutOneThatMayGoOnNothingIsKept) {
  FollowedChildren children(/*is_wanted=*/true, &counted_);
  children.Keep(std::move(memory_), /*may_begin=*/false);
  EXPECT_FALSE(children.are_left());
  EXPECT_EQ(counted_.alloc_calls, 3u);
}

TEST_F(FollowedChildrenTest, OneThatHasCountedNothingYetMayBegin) {
  void* child = MapAsChild();
  ASSERT_NE(child, MAP_FAILED);
  FollowedChildren children(/*is_wanted=*/true, &counted_);
  children.Keep(std::move(memory_), /*may_begin=*/true);
  ASSERT_TRUE(children.are_left());
  children.LookAfter();
  ASSERT_TRUE(children.are_left());
  auto* const its = static_cast<ClientBlock*>(child);
  its->ring.counted_children.store(3);
  its->fork_slots[0].slot.thread_pointer.store(kOwner);
  ASSERT_NE(children.left(), nullptr);
  EXPECT_EQ(OwnersOfForkSlots(*children.left()), std::vector<pid_t>{INT32_MAX - 1});
  munmap(child, sizeof(ClientBlock));
  children.LookAfter();
  EXPECT_FALSE(children.are_left());
  EXPECT_EQ(children.left(), nullptr);
  EXPECT_EQ(counted_.count, 3u);
}

TEST_F(FollowedChildrenTest, OneThatGoesOnIsCountedUntilItLeavesTheMemory) {
  client().fork_slots[0].slot.thread_pointer.store(kOwner);
  void* child = MapAsChild();
  ASSERT_NE(child, MAP_FAILED);
  FollowedChildren children(/*is_wanted=*/true, &counted_);
  children.Keep(std::move(memory_), /*may_begin=*/false);
  ASSERT_TRUE(children.are_left());
  children.LookAfter();
  EXPECT_TRUE(children.are_left());
  static_cast<ClientBlock*>(child)->fork_slots[0].slot.calls = 10;
  munmap(child, sizeof(ClientBlock));
  children.LookAfter();
  EXPECT_FALSE(children.are_left());
  EXPECT_EQ(counted_.alloc_calls, 10u);
}

TEST_F(FollowedChildrenTest, OneThatIsNotWaitedForIsCountedAsItIs) {
  client().fork_slots[0].slot.thread_pointer.store(kOwner);
  void* child = MapAsChild();
  ASSERT_NE(child, MAP_FAILED);
  FollowedChildren children(/*is_wanted=*/true, &counted_);
  children.Keep(std::move(memory_), /*may_begin=*/false);
  static_cast<ClientBlock*>(child)->fork_slots[0].slot.calls = 10;
  children.Leave();
  EXPECT_FALSE(children.are_left());
  EXPECT_EQ(counted_.alloc_calls, 10u);
  munmap(child, sizeof(ClientBlock));
}

TEST_F(FollowedChildrenTest, SlotsAreFreedOnlyWhenTheyAreScarceAndThereIsTime) {
  std::atomic<uint64_t>& owner = client().fork_slots[0].slot.thread_pointer;
  owner.store(kOwner);
  FollowedChildren children(/*is_wanted=*/true, &counted_);
  children.FreeSlots(client(), UINT64_MAX);
  EXPECT_FALSE(children.is_looking());
  client().ring.fork_slot_count.store(kMaxForkSlots / 2);
  children.FreeSlots(client(), /*end_ns=*/0);
  EXPECT_FALSE(children.is_looking());
  EXPECT_EQ(owner.load(), kOwner);
  const uint64_t deadline = MonotonicNs() + 60'000'000'000;
  while (owner.load() != 0 && MonotonicNs() < deadline)
    children.FreeSlots(client(), UINT64_MAX);
  EXPECT_EQ(owner.load(), 0u);
  EXPECT_FALSE(children.is_looking());
}

}  // namespace
}  // namespace heapprofd
