#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace heapprofd {
namespace {

TEST(ResultTest, AValueHasNoError) {
  const Result<int> result = 7;
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), 7);
  EXPECT_TRUE(result.status().ok());
  EXPECT_EQ(result.status().message(), "");
  EXPECT_TRUE(Result<int>(7).status().ok());
}

TEST(ResultTest, AnErrorIsKept) {
  const Result<int> result = Invalid("cannot count: it is no number");
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(result.status().message(), "cannot count: it is no number");
  EXPECT_EQ(Result<int>(Invalid("x")).status().message(), "x");
}

TEST(ResultTest, ValuesThatCannotBeCopiedMoveOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  *result.value() += 1;
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 8);
}

}  // namespace
}  // namespace heapprofd
