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
            "?1m");
}

TEST(PrintableTest, TextIsShownInItsOrder) {
  EXPECT_EQ(Printable("a\u202eb\u2066c\u200bd\u2028e\ufeff"), "a?b?c?d?e?");
}

TEST(PrintableTest, BytesThatAreNoTextAreNotSent) {
  EXPECT_EQ(Printable("a\x9b"
                      "31m\xff\xc0\x9b\xed\xa0\x80\xe2\x86"),
            "a?31m????????");
}

TEST(PrintableTest, LinesStayLines) {
  EXPECT_EQ(PrintableLines("a\x1b\nb\r\n"), "a?\nb?\n");
}

TEST(PrintableTest, OtherTextStaysAsItIs) {
  EXPECT_EQ(Printable("\xc2\xb1 \xe2\x86\x90 caf\xc3\xa9"),
            "\xc2\xb1 \xe2\x86\x90 caf\xc3\xa9");
  EXPECT_EQ(Printable("\xf0\x9f\x90\xa7"), "\xf0\x9f\x90\xa7");
  EXPECT_EQ(Printable("\xe2\x96\x84\xc3\x9f"), "\xe2\x96\x84\xc3\x9f");
}

TEST(TextTest, AWordOfAShellStaysOneWhateverIsInIt) {
  EXPECT_EQ(ShellQuoted("a b"), "'a b'");
  EXPECT_EQ(ShellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuoted(""), "''");
}

TEST(TextTest, BlanksAtTheEndsAreLeftOut) {
  EXPECT_EQ(Trimmed(" \tone two\r ", " \t\r"), "one two");
  EXPECT_EQ(Trimmed("", " "), "");
  const std::string_view blank = "   ";
  EXPECT_EQ(Trimmed(blank, " ").data(), blank.data() + blank.size());
}

TEST(TextTest, AFileNameIsWhatComesBehindTheLastSlash) {
  EXPECT_EQ(FileName("/usr/bin/env"), "env");
  EXPECT_EQ(FileName("env"), "env");
  EXPECT_EQ(FileName("/usr/"), "");
}

}  // namespace
}  // namespace heapprofd
