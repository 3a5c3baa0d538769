#include "client/join_claim.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kThread = 0x7000;
constexpr uint64_t kOther = 0x8000;

TEST(JoinClaimTest, AHandlerSeesThatItHasInterruptedTheOneThatJoins) {
  JoinClaim claim{};
  EXPECT_EQ(claim.Take(kThread), JoinClaim::Holder::kNobody);
  EXPECT_EQ(claim.Take(kThread), JoinClaim::Holder::kThisThread);
  EXPECT_EQ(claim.HolderFor(kThread), JoinClaim::Holder::kThisThread);
}

TEST(JoinClaimTest, OthersWaitUntilItIsReleased) {
  JoinClaim claim{};
  EXPECT_EQ(claim.Take(kThread), JoinClaim::Holder::kNobody);
  EXPECT_EQ(claim.Take(kOther), JoinClaim::Holder::kAnother);
  EXPECT_EQ(claim.HolderFor(kOther), JoinClaim::Holder::kAnother);
  claim.Release();
  EXPECT_EQ(claim.HolderFor(kOther), JoinClaim::Holder::kNobody);
  EXPECT_EQ(claim.Take(kOther), JoinClaim::Holder::kNobody);
}

}  // namespace
}  // namespace heapprofd
