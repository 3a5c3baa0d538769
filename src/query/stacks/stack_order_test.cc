#include "query/stacks/stack_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

using Names = std::vector<std::string>;

class StackOrderTest : public testing::Test {
 protected:
  StackOrderTest() : builder_(&trace_) { builder_.ReadWholeStacks(); }

  uint32_t Frame(const std::string& name, uint64_t rel_pc = 0) {
    return builder_.InternFrame(builder_.Intern(name), kNoId, rel_pc);
  }

  void Add(const Names& names) {
    std::vector<uint32_t> frames;
    frames.reserve(names.size());
    for (const std::string& name : names)
      frames.push_back(Frame(name));
    builder_.InternWhole(frames);
  }

  std::optional<StackOrder> Order() {
    Result<std::optional<StackOrder>> order = StackOrder::Of(trace_, cancelled_);
    EXPECT_TRUE(order.ok());
    return std::move(order).value();
  }

  static Names NamesOf(const StackOrder& order, size_t place) {
    const FrameFunctions& functions = order.functions();
    Names names;
    for (const uint32_t row : order.FunctionsOf(order.stacks()[place]))
      names.emplace_back(functions.names()->Get(functions.table()[row].name));
    return names;
  }

  ImportedTrace trace_;
  TraceBuilder builder_;
  CancelFlag cancelled_ = false;
};

class StackOrderSizesTest : public StackOrderTest,
                            public testing::WithParamInterface<size_t> {};

TEST_P(StackOrderSizesTest, StacksOfANodeAreNeighbours) {
  std::mt19937 random(1);
  const size_t count = GetParam();
  while (trace_.stacks.row_count() < count) {
    Names names;
    do
      names.push_back(std::string(1, static_cast<char>('a' + random() % 3)));
    while (random() % 6 != 0);
    Add(names);
  }
  const std::optional<StackOrder> order = Order();
  ASSERT_TRUE(order);
  ASSERT_EQ(order->stacks().size(), count);
  Names before;
  for (size_t place = 0; place < count; ++place) {
    const Names names = NamesOf(*order, place);
    size_t shared = 0;
    while (shared < before.size() && shared < names.size() &&
           before[shared] == names[shared])
      ++shared;
    EXPECT_EQ(order->SharedAt(place), shared);
    EXPECT_TRUE(shared == before.size() || shared < names.size())
        << "a stack that ends comes before those that go on";
    before = names;
  }
  // A function that was left at some depth never comes again there.
  std::vector<Names> seen;
  for (size_t place = 0; place < count; ++place) {
    const Names names = NamesOf(*order, place);
    for (size_t depth = order->SharedAt(place); depth < names.size(); ++depth)
      seen.emplace_back(names.begin(), names.begin() + static_cast<ptrdiff_t>(depth) + 1);
  }
  const size_t nodes = seen.size();
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), nodes);
}

// The larger one has large groups, and those that threads share.
INSTANTIATE_TEST_SUITE_P(Sizes, StackOrderSizesTest, testing::Values(500, 20'000));

TEST_F(StackOrderTest, EqualStacksShareAll) {
  const std::vector<uint32_t> here = {Frame("main", 1)};
  const std::vector<uint32_t> there = {Frame("main", 2)};
  builder_.InternWhole(here);
  builder_.InternWhole(there);
  const std::optional<StackOrder> order = Order();
  ASSERT_EQ(order->stacks().size(), 2u);
  EXPECT_EQ(order->SharedAt(0), 0u);
  EXPECT_EQ(order->SharedAt(1), 1u);
}

TEST_F(StackOrderTest, AllocationFunctionsAreLeftOut) {
  Add({"main", "operator new(unsigned long)", "malloc"});
  Add({"malloc"});
  const std::optional<StackOrder> order = Order();
  EXPECT_EQ(NamesOf(*order, 0), Names{"main"});
  EXPECT_EQ(NamesOf(*order, 1), Names{"malloc"}) << "there is nobody else";
}

TEST_F(StackOrderTest, ANodeHasWhatItsFunctionsAgreeOn) {
  const StringId name = builder_.Intern("f");
  const StringId file = builder_.Intern("f.cc");
  for (const uint32_t line : {7u, 7u, 8u}) {
    const std::vector<uint32_t> frames = {Frame("f", trace_.frames.row_count())};
    trace_.frames.symbol_set[frames[0]] = builder_.AddSymbol(kNoId, name, file, line);
    builder_.InternWhole(frames);
  }
  std::optional<StackOrder> order = Order();
  const auto function_of = [&order](size_t count) {
    return order->functions().table()[order->FunctionAt(order->stacks().first(count), 0)];
  };
  EXPECT_EQ(function_of(2).line, 7u);
  EXPECT_EQ(function_of(3).line, 0u);
  EXPECT_EQ(function_of(3).source_file, file);
}

TEST_F(StackOrderTest, IsCancelled) {
  Add({"main", "f"});
  cancelled_ = true;
  EXPECT_EQ(StackOrder::Of(trace_, cancelled_).status().code(), StatusCode::kUnavailable);
}

TEST_F(StackOrderTest, NoStacksHaveAnOrder) {
  const std::optional<StackOrder> order = Order();
  ASSERT_TRUE(order);
  EXPECT_TRUE(order->stacks().empty());
}

}  // namespace
}  // namespace heapprofd
