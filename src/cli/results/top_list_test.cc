// Who is shown as the holder of memory: never the allocator, always somebody.
#include "cli/results/top_list.h"

#include <gtest/gtest.h>

#include "cli/results/test_profile.h"

namespace heapprofd {
namespace {

using Names = std::vector<std::string>;

TEST(TopListTest, TheHolderIsTheFirstFunctionThatIsNotAnAllocators) {
  TestProfile test;
  test.Add({"malloc", "operator new(unsigned long)", "_ZNSt6vectorIiE9push_backEi",
            "Load", "main"},
           1000);
  test.LineOf(test.Add({"_Znwm"}, 0)).function = "operator new";
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].function, "Load");
  EXPECT_EQ(top[0].callers, Names{"main"});
  EXPECT_DOUBLE_EQ(top[0].live.bytes, 1000);
}

TEST(TopListTest, AllocatorsAloneAreShownByTheOneThatWasNotCalledByTheProgram) {
  TestProfile test;
  const CallsiteId callsite = test.Add({"malloc", "strdup"}, 1000);
  test.profile().frames[test.profile().callsites[callsite].frame].is_allocator = true;
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].function, "strdup");
}

TEST(TopListTest, StacksOfOneHolderAreAddedAndTheLargestGivesTheCallers) {
  TestProfile test;
  test.Add({"Insert", "Small", "main"}, 100);
  test.Add({"Insert", "Large", "Loop", "Serve", "main"}, 300);
  test.Add({"Other", "main"}, 200);
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].function, "Insert");
  EXPECT_DOUBLE_EQ(top[0].live.bytes, 400);
  EXPECT_EQ(top[0].callers, (Names{"Large", "Loop", "Serve"}));
  EXPECT_EQ(top[1].function, "Other");
}

TEST(TopListTest, NoMoreRowsThanAskedForAndTheLargestFirst) {
  TestProfile test;
  for (int i = 1; i <= 20; ++i)
    test.Add({"f" + std::to_string(i)}, i * 10);
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].function, "f20");
  EXPECT_EQ(top[2].function, "f18");
  EXPECT_TRUE(TopByLiveBytes(test.profile(), test.dump(), 0).empty());
}

TEST(TopListTest, WhatIsFreedIsNotShown) {
  TestProfile test;
  test.Add({"freed"}, 0);
  EXPECT_TRUE(TopByLiveBytes(test.profile(), test.dump(), 10).empty());
}

TEST(TopListTest, AStackOfAllocatorsOnlyIsHeldByTheInnermost) {
  TestProfile test;
  test.Add({"malloc", "xmalloc"}, 50);
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].function, "malloc");
}

TEST(TopListTest, InlinedFunctionsAreFramesToo) {
  TestProfile test;
  const CallsiteId callsite = test.Add({"placeholder", "main"}, 50);
  Frame& frame = test.profile().frames[test.profile().callsites[callsite].frame];
  frame.lines = {
      {.function = "operator new", .system_name = "", .file = "", .line = 0},
      {.function = "Grow", .system_name = "", .file = "/src/pool/grow.cc", .line = 31},
      {.function = "Use", .system_name = "", .file = "use.cc", .line = 8}};
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].function, "Grow");
  EXPECT_EQ(top[0].location, "grow.cc:31");
  EXPECT_EQ(top[0].callers, (Names{"Use", "main"}));
}

TEST(TopListTest, MangledNamesAreShownShort) {
  TestProfile test;
  test.Add({"_ZN4llvm11Instruction5cloneEi"}, 50);
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].function, "llvm::Instruction::clone");
}

TEST(TopListTest, FramesWithoutNameShowWhereTheyAre) {
  TestProfile test;
  const MappingId library = test.AddMapping("/usr/lib/libfoo.so.1");
  const MappingId anonymous = test.AddMapping("");
  test.AddUnnamed(library, 0x1234, 300);
  test.AddUnnamed(anonymous, 0x10, 200);
  test.AddUnnamed(kNoId, 0xdead, 100);
  const std::vector<TopEntry> top = TopByLiveBytes(test.profile(), test.dump(), 10);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].function, "libfoo.so.1+0x1234");
  EXPECT_EQ(top[1].function, "[anonymous]+0x10");
  EXPECT_EQ(top[2].function, "[unknown]+0xdead");
}

}  // namespace
}  // namespace heapprofd
