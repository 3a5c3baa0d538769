// Columns and lines.
#include "cli/text_layout.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(TextLayoutTest, LinesAreBrokenAtBlanksAndLongWordsStayWhole) {
  EXPECT_EQ(Wrap("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(Wrap("a /very/long/path b", 2, 8), "a\n  /very/long/path\n  b");
  EXPECT_EQ(Wrap("", 2, 8), "");
}

TEST(TextLayoutTest, CharactersCountAndNotBytes) {
  EXPECT_EQ(Columns("±ü"), 2u);
  EXPECT_EQ(Pad("±", 3), "±  ");
  EXPECT_EQ(Wrap("±± ±±", 0, 5), "±± ±±");
  EXPECT_EQ(Cut("üüüüüü", 8), "üü...");
}

TEST(TextLayoutTest, WhatIsNoTerminalHasNoWidth) {
  EXPECT_EQ(TerminalWidth(-1), 0u);
}

}  // namespace
}  // namespace heapprofd
