// Columns and lines.
#include "cli/text_layout.h"

#include <gtest/gtest.h>
#include <locale.h>

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
  EXPECT_EQ(Cut("üüüüüü", 6), "üüüüüü");
  EXPECT_EQ(Cut("üüüüüü", 5), "üü...");
}

TEST(TextLayoutTest, WideCharactersTakeTwoColumnsAndAccentsNone) {
  ASSERT_NE(setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  EXPECT_EQ(Columns("\u6f22\u5b57"), 4u);
  EXPECT_EQ(Columns("e\u0301"), 1u);
  EXPECT_EQ(Cut("\u6f22\u5b57\u6f22\u5b57", 8), "\u6f22\u5b57\u6f22\u5b57");
  EXPECT_EQ(Cut("\u6f22\u5b57\u6f22\u5b57", 7), "\u6f22\u5b57...");
  EXPECT_EQ(Cut("\u6f22\u5b57\u6f22\u5b57", 6), "\u6f22...");
}

TEST(TextLayoutTest, WhatIsCutIsSmallWhateverItHas) {
  ASSERT_NE(setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  EXPECT_EQ(Cut("abc", 2), "..");
  EXPECT_EQ(Cut("abc", 0), "");
  std::string accents = "e";
  for (int i = 0; i < 1000; ++i)
    accents += "\u0301";
  EXPECT_LE(Cut(accents, 10).size(), 200u);
  EXPECT_EQ(Columns("\xc3\xff\xe2\x82"), 3u);  // no UTF-8
}

TEST(TextLayoutTest, WhatIsNoTerminalHasNoWidth) {
  EXPECT_EQ(TerminalWidth(-1), 0u);
}

}  // namespace
}  // namespace heapprofd
