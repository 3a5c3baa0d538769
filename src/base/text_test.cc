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

}  // namespace
}  // namespace heapprofd
