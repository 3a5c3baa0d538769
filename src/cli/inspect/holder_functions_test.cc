#include "cli/inspect/holder_functions.h"

#include <gtest/gtest.h>

#include "cli/results/test_profile.h"

namespace heapprofd {
namespace {

std::vector<uint32_t> RowsOf(HolderFunctions& functions, CallsiteId callsite) {
  const auto rows = functions.RowsOf(functions.StackAt(functions.PositionsOf(callsite)));
  return {rows.begin(), rows.end()};
}

TEST(HolderFunctionsTest, OneNameOfAModuleIsOneRow) {
  TestProfile test;
  const CallsiteId one = test.Add({"malloc", "Fill", "Serve", "main"}, 100);
  const CallsiteId other = test.Add({"Serve", "Fill", "main"}, 100);
  HolderFunctions functions(test.profile());
  const CallsiteId again = test.Add({"malloc", "Fill", "Serve", "main"}, 100);
  EXPECT_EQ(RowsOf(functions, one), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(RowsOf(functions, other), (std::vector<uint32_t>{1, 0, 2}));
  EXPECT_EQ(functions.StackAt(functions.PositionsOf(other)), 1u);
  EXPECT_EQ(functions.StackAt(functions.PositionsOf(again)), 0u);
  ASSERT_EQ(functions.functions().size(), 3u);
  EXPECT_EQ(functions.functions()[0].name, "Fill");
  EXPECT_EQ(functions.functions()[1].label, "Serve");
}

TEST(HolderFunctionsTest, AStackWithoutFramesHasNoRows) {
  TestProfile test;
  HolderFunctions functions(test.profile());
  EXPECT_TRUE(RowsOf(functions, kNoId).empty());
  EXPECT_TRUE(functions.functions().empty());
}

}  // namespace
}  // namespace heapprofd
