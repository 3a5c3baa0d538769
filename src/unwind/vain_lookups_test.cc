// When it is certain that no code is somewhere, and when not any more.
#include "unwind/vain_lookups.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(VainLookupsTest, OnlyWhatWasReadAfterTheQuestionMakesItCertain) {
  VainLookups vain;
  vain.NoteReading();
  EXPECT_FALSE(vain.Conclude(100)) << "nobody asked";
  vain.Ask(100);
  EXPECT_FALSE(vain.Conclude(100)) << "read before";
  vain.NoteReading();
  EXPECT_FALSE(vain.IsCertain(100));
  EXPECT_TRUE(vain.Conclude(100));
  EXPECT_TRUE(vain.IsCertain(100));
}

TEST(VainLookupsTest, AskingAgainDoesNotMakeItYounger) {
  VainLookups vain;
  vain.Ask(100);
  vain.NoteReading();
  vain.Ask(100);
  EXPECT_TRUE(vain.Conclude(100));
}

TEST(VainLookupsTest, WhatWasFoundIsNoQuestionAnyMore) {
  VainLookups vain;
  vain.Ask(100);
  vain.Find(100);
  vain.NoteReading();
  EXPECT_FALSE(vain.Conclude(100));
}

TEST(VainLookupsTest, CodeThereContradictsAndNothingIsCertainAnyMore) {
  VainLookups vain;
  for (const uint64_t pc : {100U, 200U})
    vain.Ask(pc);
  vain.NoteReading();
  for (const uint64_t pc : {100U, 200U})
    ASSERT_TRUE(vain.Conclude(pc));
  EXPECT_FALSE(vain.Contradict(101, 200)) << "the end is not part of it";
  EXPECT_TRUE(vain.IsCertain(200));
  EXPECT_TRUE(vain.Contradict(100, 101));
  EXPECT_FALSE(vain.IsCertain(200));
  EXPECT_FALSE(vain.Contradict(0, 1000));
}

TEST(VainLookupsTest, SoManyAreKeptAndTheNumbersOutliveThem) {
  VainLookups vain;
  constexpr uint64_t kMany = 10'000;
  uint64_t certain = 0;
  for (uint64_t pc = 0; pc < kMany; ++pc) {
    vain.Ask(pc);
    vain.NoteReading();
    certain += vain.Conclude(pc) ? 1U : 0U;
  }
  EXPECT_EQ(certain, uint64_t{4096});
  vain.Postpone();
  vain.ForgetAddresses();
  EXPECT_FALSE(vain.IsCertain(0));
  EXPECT_EQ(vain.readings(), kMany);
  EXPECT_EQ(vain.postponed(), uint64_t{1});
}

}  // namespace
}  // namespace heapprofd
