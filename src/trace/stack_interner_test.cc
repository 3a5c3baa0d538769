#include "trace/stack_interner.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace heapprofd {
namespace {

class StackInternerTest : public testing::Test {
 protected:
  StackInternerTest() : builder_(&trace_), stacks_(&builder_) {}

  void Flush() {
    stacks_.Flush([this](uint64_t id, uint32_t callsite) {
      ids_.push_back(id);
      callsites_.push_back(callsite);
    });
  }

  void Add(uint64_t id, const std::vector<uint32_t>& stack) {
    for (const uint32_t frame : stack)
      stacks_.Push(frame);
    if (stacks_.End(id))
      Flush();
  }

  ImportedTrace trace_;
  TraceBuilder builder_;
  StackInterner stacks_;
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> callsites_;
};

TEST_F(StackInternerTest, NoFramesLeadNowhere) {
  Add(7, {});
  Flush();
  EXPECT_EQ(callsites_, std::vector<uint32_t>{kNoId});
}

TEST_F(StackInternerTest, DroppedFramesAreNoPartOfTheNextStack) {
  stacks_.Push(5);
  stacks_.Drop();
  Add(1, {6});
  Flush();
  EXPECT_EQ(trace_.callsites.row_count(), 1u);
  EXPECT_EQ(trace_.callsites.frame[0], 6u);
}

// Stacks that share beginnings of all lengths get the callsites that frame-by-frame
// interning gives them, in their order.
TEST_F(StackInternerTest, RandomStacksGetTheCallsitesOfTheirFrames) {
  std::mt19937 random(301);
  std::vector<std::vector<uint32_t>> stacks = {{}};
  for (uint64_t id = 0; id < 20'000; ++id) {
    std::vector<uint32_t> stack = stacks[random() % stacks.size()];
    stack.resize(random() % (stack.size() + 1));
    for (size_t more = random() % 7; more > 0; --more)
      stack.push_back(static_cast<uint32_t>(random() % 3));
    stacks.push_back(stack);
    Add(id, stack);
  }
  Flush();
  ASSERT_EQ(ids_.size(), 20'000u);
  ImportedTrace plain_trace;
  TraceBuilder plain(&plain_trace);
  for (uint64_t id = 0; id < ids_.size(); ++id) {
    uint32_t want = kNoId;
    for (const uint32_t frame : stacks[id + 1])
      want = plain.InternCallsite(want, frame);
    ASSERT_EQ(ids_[id], id);
    ASSERT_EQ(callsites_[id], want);
  }
  EXPECT_EQ(trace_.callsites.row_count(), plain_trace.callsites.row_count());
}

}  // namespace
}  // namespace heapprofd
