#include "engine/target/forked_children.h"

#include <gtest/gtest.h>

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

  std::unique_ptr<ClientBlock> client_ = std::make_unique<ClientBlock>();
};

TEST_F(ForkedChildrenTest, CountsStayWhenTheirOwnerIsGone) {
  client_->ring.counted_children.store(2);
  Own(0, 0, 10, 100);
  Own(1, kForkSlotOwned | 1, 3, 50);
  EXPECT_EQ(CountOwnedForkSlots(*client_), 1u);
  const ForkedChildren children = CountForkedChildren(*client_);
  EXPECT_EQ(children.count, 2u);
  EXPECT_EQ(children.alloc_calls, 13u);
  EXPECT_EQ(children.alloc_bytes, 150u);
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
