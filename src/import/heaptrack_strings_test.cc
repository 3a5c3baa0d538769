#include "import/heaptrack_strings.h"

#include <gtest/gtest.h>

#include <string>

namespace heapprofd {
namespace {

class HeaptrackStringsTest : public testing::Test {
 protected:
  std::string TextAt(uint64_t number) const {
    return std::string(trace_.Text(strings_.At(number)));
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  HeaptrackStrings strings_{&builder_};
};

TEST_F(HeaptrackStringsTest, NumbersBeginWithOne) {
  EXPECT_TRUE(strings_.Add("main"));
  EXPECT_TRUE(strings_.Add("a b"));
  EXPECT_EQ(TextAt(1), "main");
  EXPECT_EQ(TextAt(2), "a b");
  EXPECT_EQ(strings_.At(0), kEmptyString);
  EXPECT_EQ(strings_.At(3), kEmptyString);
  EXPECT_EQ(strings_.At(std::nullopt), kEmptyString);
}

TEST_F(HeaptrackStringsTest, OneWithALengthMayHaveLineBreaks) {
  strings_.set_have_lengths(true);
  EXPECT_TRUE(strings_.Add("4 main"));
  EXPECT_FALSE(strings_.is_open());
  EXPECT_TRUE(strings_.Add("8 two"));
  EXPECT_TRUE(strings_.is_open());
  strings_.Continue("");
  EXPECT_TRUE(strings_.is_open());
  strings_.Continue("+ 1");
  EXPECT_FALSE(strings_.is_open());
  EXPECT_EQ(TextAt(1), "main");
  EXPECT_EQ(TextAt(2), "two\n\n+ 1");
}

TEST_F(HeaptrackStringsTest, WhatIsLongerThanItSaysIsCut) {
  strings_.set_have_lengths(true);
  EXPECT_TRUE(strings_.Add("3 main"));
  EXPECT_EQ(TextAt(1), "mai");
}

TEST_F(HeaptrackStringsTest, ForgedLengthsAreRefused) {
  strings_.set_have_lengths(true);
  for (const char* text : {"", "4", "4main", "x main", "ffffffffffffffff a", "100001 a",
                           "10000000000000000 a"})
    EXPECT_FALSE(strings_.Add(text)) << text;
  EXPECT_FALSE(strings_.is_open());
  EXPECT_EQ(strings_.At(1), kEmptyString);
}

}  // namespace
}  // namespace heapprofd
