#include "profile/callsite_interner.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace heapprofd {
namespace {

TEST(CallsiteInternerTest, EqualFramesShareAnIdAndOthersDoNot) {
  TargetProfile profile;
  CallsiteInterner interner(&profile);
  const FrameId first = interner.InternFrame(0, 0x100);
  EXPECT_EQ(interner.InternFrame(0, 0x100), first);
  EXPECT_NE(interner.InternFrame(1, 0x100), first);
  EXPECT_NE(interner.InternFrame(0, 0x101), first);
  EXPECT_NE(interner.InternFrame(kNoId, 0x100), first);
  ASSERT_EQ(profile.frames.size(), 4u);
  EXPECT_EQ(profile.frames[first].mapping, 0u);
  EXPECT_EQ(profile.frames[first].rel_pc, 0x100u);
  EXPECT_TRUE(profile.frames[first].lines.empty());
}

TEST(CallsiteInternerTest, ANamedFrameCarriesItsNameAndNoMapping) {
  TargetProfile profile;
  CallsiteInterner interner(&profile);
  const FrameId named = interner.InternNamedFrame("[stack lost]");
  EXPECT_EQ(interner.InternNamedFrame("[stack lost]"), named);
  EXPECT_NE(interner.InternNamedFrame("[too many stacks]"), named);
  EXPECT_NE(interner.InternFrame(kNoId, 0), named);
  EXPECT_EQ(profile.frames[named].mapping, kNoId);
  ASSERT_EQ(profile.frames[named].lines.size(), 1u);
  EXPECT_EQ(profile.frames[named].lines[0].function, "[stack lost]");
}

TEST(CallsiteInternerTest, TheSameFrameUnderAnotherParentIsAnotherCallsite) {
  TargetProfile profile;
  CallsiteInterner interner(&profile);
  const CallsiteId outer = interner.InternCallsite(kNoId, 5);
  const CallsiteId inner = interner.InternCallsite(outer, 5);
  EXPECT_NE(inner, outer);
  EXPECT_EQ(interner.InternCallsite(kNoId, 5), outer);
  EXPECT_EQ(interner.InternCallsite(outer, 5), inner);
  EXPECT_EQ(profile.callsites[inner].parent, outer);
  EXPECT_EQ(profile.callsites[outer].parent, kNoId);
}

TEST(CallsiteInternerTest, RandomUseBehavesLikeMapsWithDenseIds) {
  TargetProfile profile;
  CallsiteInterner interner(&profile);
  std::map<std::pair<MappingId, uint64_t>, FrameId> frames;
  std::map<std::pair<CallsiteId, FrameId>, CallsiteId> callsites;
  std::mt19937_64 random(17);
  for (int i = 0; i < 100'000; ++i) {
    const auto mapping = static_cast<MappingId>(random() % 3);
    const uint64_t rel_pc = random() % 2000 << (random() % 2 * 30);
    const FrameId frame = interner.InternFrame(mapping, rel_pc);
    ASSERT_EQ(frames.try_emplace({mapping, rel_pc}, frames.size()).first->second, frame);
    const CallsiteId parent = callsites.empty() || random() % 10 == 0
                                  ? kNoId
                                  : static_cast<CallsiteId>(random() % callsites.size());
    const CallsiteId callsite = interner.InternCallsite(parent, frame);
    ASSERT_EQ(callsites.try_emplace({parent, frame}, callsites.size()).first->second,
              callsite);
    ASSERT_TRUE(parent == kNoId || parent < callsite ||
                callsites.at({parent, frame}) == callsite);
  }
  ASSERT_EQ(profile.frames.size(), frames.size());
  ASSERT_EQ(profile.callsites.size(), callsites.size());
  for (const auto& [key, id] : callsites) {
    EXPECT_EQ(profile.callsites[id].parent, key.first);
    EXPECT_EQ(profile.callsites[id].frame, key.second);
  }
}

}  // namespace
}  // namespace heapprofd
