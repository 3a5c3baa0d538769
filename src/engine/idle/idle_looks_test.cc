#include "engine/idle/idle_looks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/idle/fake_page_files.h"
#include "engine/target/program_requests.h"
#include "engine/target/test_target.h"
#include "engine/user_budget.h"

namespace heapprofd {
namespace {

constexpr uid_t kUserOfLooks = 12346;
constexpr uint64_t kLong = 1'000'000'000;
constexpr uint64_t kPages = 2000;

class IdleLooksTest : public testing::Test {
 protected:
  IdleLooksTest() {
    for (uint64_t page = 24; page < 24 + kPages; ++page)
      files_.Map(page, page);
    heap_.Allocate({.address = 24 * 4096, .size = kPages * 4096, .interval = 1}, 1);
  }

  // As of a recording that has begun long ago.
  IdleLooks Looks(bool looks_between) {
    return {{.heap = &heap_, .account = &account_},
            IdleMemory(files_.Pages(), looks_between, MonotonicNs() - 10 * kLong)};
  }

  bool IsMarked() {
    files_.TakeMarks();
    return files_.IsIdle(24);
  }

  FakePageFiles files_;
  LiveHeap heap_{1};
  TargetProfile profile_;
  ModuleCache modules_;
  AddressSpace code_{getpid(), &modules_, &profile_.mappings};
  ProgramRequests requests_{&profile_};
  TargetAccount account_{kUserOfLooks,
                         {.profile = &profile_, .requests = &requests_, .code = &code_}};
};

TEST_F(IdleLooksTest, WhatNobodyAsksForIsDoneAtOnce) {
  IdleLooks looks = IdleLooks::Of(getpid(), {}, {.heap = &heap_, .account = &account_});
  EXPECT_EQ(looks.memory(), nullptr);
  EXPECT_EQ(looks.note(), "");
  EXPECT_TRUE(looks.Look(IdleMemory::Occasion::kDump, 0));
  looks.LookBetween(~uint64_t{0});
  looks.Drop();
}

TEST_F(IdleLooksTest, WithoutRoomNothingIsLookedAt) {
  UserBudget::Account other(&UserBudget::OfEngine(), kUserOfLooks);
  other.Set(uint64_t{1} << 60);
  IdleLooks looks = Looks(/*looks_between=*/false);
  EXPECT_TRUE(looks.Look(IdleMemory::Occasion::kDump, kLong));
  EXPECT_FALSE(IsMarked());
  EXPECT_EQ(looks.memory()->found().since_ns, 0u);
  other.Set(0);
  EXPECT_TRUE(looks.Look(IdleMemory::Occasion::kDump, kLong));
  EXPECT_TRUE(IsMarked());
}

TEST_F(IdleLooksTest, OneThatIsDroppedBeginsAnew) {
  IdleLooks looks = Looks(/*looks_between=*/false);
  EXPECT_FALSE(looks.Look(IdleMemory::Occasion::kDump, 0));
  EXPECT_TRUE(looks.memory()->is_looking());
  looks.Drop();
  EXPECT_FALSE(looks.memory()->is_looking());
  EXPECT_TRUE(looks.Look(IdleMemory::Occasion::kDump, kLong));
  EXPECT_TRUE(IsMarked());
}

TEST_F(IdleLooksTest, BetweenDumpsItIsLookedAtWhereThereAreNoOthers) {
  IdleLooks with_dumps = Looks(/*looks_between=*/false);
  with_dumps.LookBetween(MonotonicNs() + kLong);
  EXPECT_FALSE(IsMarked());
  IdleLooks alone = Looks(/*looks_between=*/true);
  alone.LookBetween(MonotonicNs() + kLong);
  EXPECT_TRUE(IsMarked());
}

}  // namespace
}  // namespace heapprofd
