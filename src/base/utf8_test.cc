#include "base/utf8.h"

#include <gtest/gtest.h>

#include <iterator>

namespace heapprofd {
namespace {

constexpr const char* kReplacement = "\xef\xbf\xbd";

TEST(Utf8Test, WellFormedTextStaysAsItIs) {
  for (const char* text : {"", "malloc", "caf\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(ToUtf8(text), text);
}

TEST(Utf8Test, EachByteOutOfPlaceIsReplaced) {
  EXPECT_EQ(ToUtf8("caf\xe9"), std::string("caf") + kReplacement);
  EXPECT_EQ(ToUtf8("\x80z"), std::string(kReplacement) + "z");
  EXPECT_EQ(ToUtf8("\xe2\x82"), std::string(kReplacement) + kReplacement);
}

// Overlong forms, surrogates, beyond U+10FFFF.
TEST(Utf8Test, SequencesThatStandForNoCharacterAreReplaced) {
  for (const char* text : {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf",
                           "\xf4\x90\x80\x80", "\xff"}) {
    std::string want;
    for (size_t i = 0; i < std::string_view(text).size(); ++i)
      want += kReplacement;
    EXPECT_EQ(ToUtf8(text), want);
  }
}

TEST(Utf8Test, TextIsCutBetweenCharacters) {
  const std::string text = "a\xe2\x82\xac\xc3\xa9";
  const char* const cut[] = {"", "a", "a", "a", "a\xe2\x82\xac", "a\xe2\x82\xac"};
  for (size_t bytes = 0; bytes < std::size(cut); ++bytes)
    EXPECT_EQ(CutUtf8(text, bytes), cut[bytes]);
  EXPECT_EQ(CutUtf8(text, 6), text);
  EXPECT_EQ(CutUtf8(text, 99), text);
  EXPECT_EQ(CutUtf8("\x80\x80\x80", 2), "");
}

}  // namespace
}  // namespace heapprofd
