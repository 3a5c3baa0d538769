#include "base/text.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(HexEncodeTest, EveryByteBecomesTwoLowerCaseDigits) {
  EXPECT_EQ(HexEncode(std::string_view("\x00\x0a\xff\x7f", 4)), "000aff7f");
}

TEST(HexEncodeTest, NothingBecomesNothing) {
  EXPECT_EQ(HexEncode(""), "");
}

TEST(PrintableTest, NothingSteersATerminal) {
  EXPECT_EQ(Printable("a\x1b[31m\x07"
                      "b\x7f\tc\nd"),
            "a?[31m?b??c?d");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "1m"),
            "\xc2?1m");
}

TEST(PrintableTest, LinesStayLines) {
  EXPECT_EQ(PrintableLines("a\x1b\nb\r\n"), "a?\nb?\n");
}

TEST(PrintableTest, OtherTextStaysAsItIs) {
  EXPECT_EQ(Printable("\xc2\xb1 \xe2\x86\x90 caf\xc3\xa9 \xff"),
            "\xc2\xb1 \xe2\x86\x90 caf\xc3\xa9 \xff");
  EXPECT_EQ(Printable("\xe2\x96\x84\xc3\x9f"), "\xe2\x96\x84\xc3\x9f");
}

}  // namespace
}  // namespace heapprofd
