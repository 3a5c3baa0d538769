// What has been told once is not told again.
#include "trace/interned_ids.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

class InternedIdsTest : public testing::Test {
 protected:
  InternedIdsTest() {
    profile_.mappings.emplace_back().path = "/lib/x.so";
    profile_.frames = {Frame{.mapping = 0, .rel_pc = 1, .lines = {}},
                       Frame{.mapping = 0, .rel_pc = 2, .lines = {}}};
    target_.mappings.resize(1);
    target_.frames.resize(2);
  }

  // Bytes that a frame adds.
  size_t Told(FrameId id, InternedIds::OfTarget& target) {
    InternedBatch batch;
    ids_.FrameOf(profile_, id, target, batch);
    return batch.data().size();
  }

  TargetProfile profile_;
  InternedIds ids_;
  InternedIds::OfTarget target_;
};

TEST_F(InternedIdsTest, AFrameIsToldOnce) {
  EXPECT_GT(Told(0, target_), 0u);
  EXPECT_EQ(Told(0, target_), 0u);
  EXPECT_NE(target_.frames[0], 0u);
}

TEST_F(InternedIdsTest, WhatFramesHaveInCommonIsToldOnce) {
  const size_t first = Told(0, target_);
  EXPECT_LT(Told(1, target_), first);
  EXPECT_NE(target_.frames[0], target_.frames[1]);
}

TEST_F(InternedIdsTest, AnotherTargetHasMappingsOfItsOwnAndTheSameStrings) {
  const size_t first = Told(0, target_);
  InternedIds::OfTarget other = {.mappings = {0}, .frames = {0, 0}};
  const size_t second = Told(0, other);
  EXPECT_GT(second, 0u);
  EXPECT_LT(second, first);
  EXPECT_NE(other.mappings[0], target_.mappings[0]);
}

TEST_F(InternedIdsTest, NoIdIsGivenTwice) {
  const uint64_t id = ids_.Next();
  Told(0, target_);
  EXPECT_NE(target_.mappings[0], id);
  EXPECT_GT(ids_.Next(), target_.mappings[0]);
}

}  // namespace
}  // namespace heapprofd
