#include "engine/user_budget.h"

#include <gtest/gtest.h>

#include <optional>

namespace heapprofd {
namespace {

TEST(UserBudgetTest, WhatOneUserHasUsedUpIsMissingToHimAlone) {
  UserBudget budget(100, 1000);
  UserBudget::Account mallory(&budget, 1);
  UserBudget::Account alice(&budget, 2);
  mallory.Set(100);
  EXPECT_FALSE(mallory.HasRoom());
  EXPECT_TRUE(alice.HasRoom());
  mallory.Set(99);
  EXPECT_TRUE(mallory.HasRoom());
}

TEST(UserBudgetTest, WhatIsAskedForMustFit) {
  UserBudget budget(100, 150);
  UserBudget::Account first(&budget, 1);
  UserBudget::Account second(&budget, 2);
  EXPECT_TRUE(first.HasRoom(99));
  EXPECT_FALSE(first.HasRoom(100));
  first.Set(60);
  EXPECT_TRUE(first.HasRoom(39));
  EXPECT_FALSE(first.HasRoom(40));
  EXPECT_TRUE(second.HasRoom(89));
  EXPECT_FALSE(second.HasRoom(90));
}

TEST(UserBudgetTest, AllTargetsOfAUserCount) {
  UserBudget budget(100, 1000);
  std::optional<UserBudget::Account> first(std::in_place, &budget, 1u);
  UserBudget::Account second(&budget, 1);
  first->Set(60);
  second.Set(60);
  EXPECT_FALSE(budget.HasRoom(1));
  first.reset();
  EXPECT_TRUE(budget.HasRoom(1));
  EXPECT_EQ(budget.used(), 60u);
}

TEST(UserBudgetTest, ManyUsersTogetherHaveALimitToo) {
  UserBudget budget(100, 150);
  UserBudget::Account first(&budget, 1);
  UserBudget::Account second(&budget, 2);
  first.Set(90);
  second.Set(60);
  EXPECT_FALSE(budget.HasRoom(3));
}

}  // namespace
}  // namespace heapprofd
