#include "tables/stack_interner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace heapprofd {
namespace {

using Stacks = std::vector<std::vector<uint32_t>>;

// Share beginnings of all lengths.
Stacks RandomStacks(size_t count) {
  std::mt19937 random(301);
  Stacks stacks = {{}};
  while (stacks.size() < count) {
    std::vector<uint32_t> stack = stacks[random() % stacks.size()];
    stack.resize(random() % (stack.size() + 1));
    for (size_t more = random() % 7; more > 0; --more)
      stack.push_back(static_cast<uint32_t>(random() % 3));
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

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

TEST_F(StackInternerTest, RandomStacksGetTheCallsitesThatTheirFramesGetOneByOne) {
  const Stacks stacks = RandomStacks(20'000);
  for (uint64_t id = 0; id < stacks.size(); ++id)
    Add(id, stacks[id]);
  Flush();
  ASSERT_EQ(ids_.size(), stacks.size());
  ImportedTrace plain_trace;
  TraceBuilder plain(&plain_trace);
  for (uint64_t id = 0; id < ids_.size(); ++id) {
    uint32_t want = kNoId;
    for (const uint32_t frame : stacks[id])
      want = plain.InternCallsite(want, frame);
    ASSERT_EQ(ids_[id], id);
    ASSERT_EQ(callsites_[id], want);
  }
  EXPECT_EQ(trace_.callsites.row_count(), plain_trace.callsites.row_count());
}

TEST_F(StackInternerTest, WholeStacksAreKeptOnceEachInTheOrderOfTheirFirstOnes) {
  const Stacks stacks = RandomStacks(20'000);
  builder_.ReadForConversion();
  for (uint64_t id = 0; id < stacks.size(); ++id)
    Add(id, stacks[id]);
  Flush();
  ASSERT_EQ(ids_.size(), stacks.size());
  std::map<std::vector<uint32_t>, uint32_t> rows = {{{}, kNoId}};
  size_t frames = 0;
  for (uint64_t id = 0; id < ids_.size(); ++id) {
    const auto next = static_cast<uint32_t>(rows.size() - 1);
    const auto [row, is_new] = rows.try_emplace(stacks[id], next);
    ASSERT_EQ(ids_[id], id);
    ASSERT_EQ(callsites_[id], row->second);
    if (!is_new)
      continue;
    const std::span<const uint32_t> kept = trace_.stacks.FramesOf(next);
    ASSERT_EQ(std::vector(kept.begin(), kept.end()), stacks[id]);
    frames += stacks[id].size();
  }
  EXPECT_LT(rows.size(), stacks.size());
  EXPECT_EQ(trace_.stacks.row_count(), rows.size() - 1);
  EXPECT_EQ(trace_.stacks.frames.size(), frames);
  EXPECT_EQ(trace_.callsites.row_count(), 0u);
}

TEST_F(StackInternerTest, WhoWasCancelledGoesOnLater) {
  const Stacks stacks = RandomStacks(1000);
  ImportedTrace trace;
  TraceBuilder at_once(&trace);
  builder_.ReadWholeStacks();
  for (const std::vector<uint32_t>& stack : stacks) {
    at_once.InternWhole(stack);
    builder_.InternWhole(stack);
  }
  const size_t rows = trace_.stacks.row_count();
  EXPECT_FALSE(builder_.UseCallsites(/*cancelled=*/true));
  EXPECT_TRUE(builder_.has_whole_stacks());
  EXPECT_EQ(trace_.stacks.row_count(), rows);
  EXPECT_TRUE(builder_.UseCallsites());
  EXPECT_EQ(trace_.stacks.row_count(), 0u);
  EXPECT_TRUE(
      std::ranges::equal(trace_.callsites.parent.span(), trace.callsites.parent.span()));
  EXPECT_TRUE(
      std::ranges::equal(trace_.callsites.frame.span(), trace.callsites.frame.span()));
}

}  // namespace
}  // namespace heapprofd
