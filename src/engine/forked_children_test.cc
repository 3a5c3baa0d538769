#include "engine/forked_children.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

namespace heapprofd {
namespace {

class ForkedChildrenTest : public testing::Test {
 protected:
  void Own(uint32_t index, uint64_t owner, uint64_t calls, uint64_t bytes) {
    ThreadSlot& slot = client_->fork_slots[index].slot;
    slot.thread_pointer.store(owner);
    slot.calls = calls;
    slot.granted = bytes;
    client_->ring.fork_slot_count.store(index + 1);
  }

  // Of a process that has ended.
  static uint64_t EndedOwner() {
    const pid_t pid = fork();
    if (pid == 0)
      _exit(0);
    waitpid(pid, nullptr, 0);
    return kForkSlotOwned | static_cast<uint64_t>(pid);
  }

  static uint64_t OwnOwner() { return kForkSlotOwned | static_cast<uint64_t>(getpid()); }

  std::unique_ptr<ClientBlock> client_ = std::make_unique<ClientBlock>();
};

TEST_F(ForkedChildrenTest, CountsStayWhenTheirOwnerIsGone) {
  client_->ring.counted_children.store(2);
  Own(0, EndedOwner(), 10, 100);
  Own(1, OwnOwner(), 3, 50);
  EXPECT_EQ(FreeSlotsOfEnded(*client_), 1u);
  EXPECT_EQ(client_->fork_slots[0].slot.thread_pointer.load(), 0u);
  const ForkedChildren children = CountForkedChildren(*client_);
  EXPECT_EQ(children.count, 2u);
  EXPECT_EQ(children.alloc_calls, 13u);
  EXPECT_EQ(children.alloc_bytes, 150u);
}

TEST_F(ForkedChildrenTest, AnOwnerWhoseThreadIsUnknownIsNotTakenForEnded) {
  Own(0, kForkSlotOwned, 1, 1);
  EXPECT_EQ(FreeSlotsOfEnded(*client_), 1u);
  EXPECT_EQ(CountOwnedForkSlots(*client_), 1u);
}

TEST_F(ForkedChildrenTest, LyingCountersAreBounded) {
  client_->ring.fork_slot_count.store(UINT32_MAX);
  client_->ring.counted_children.store(5);
  client_->ring.children_without_slot.store(UINT32_MAX);
  for (ForkSlot& fork_slot : client_->fork_slots)
    fork_slot.slot.calls = UINT64_MAX;
  const ForkedChildren children = CountForkedChildren(*client_);
  EXPECT_EQ(children.uncounted, 5u);
  EXPECT_EQ(children.alloc_calls, uint64_t{1} << 53);
}

}  // namespace
}  // namespace heapprofd
