// Ids of code at its places, by mappings of the test's. Images are in address_space_test.cc.
#include "unwind/known_code.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

MapEntry Of(uint64_t start, uint64_t end, uint64_t inode = 0, uint64_t offset = 0) {
  return {.start = start,
          .end = end,
          .offset = offset,
          .inode = inode,
          .path = inode != 0 ? "/lib/a.so" : ""};
}

class KnownCodeTest : public testing::Test {
 protected:
  MappingId Add(const MapEntry& entry) {
    const std::optional<PlacedCode> added = known_.Add(entry, nullptr);
    return added ? added->mapping : kNoId;
  }

  std::vector<Mapping> mappings_;
  KnownCode known_{&mappings_};
};

TEST_F(KnownCodeTest, CodeThatComesBackOrAPartOfItKeepsItsId) {
  const MappingId id = Add(Of(0x1000, 0x5000, 7));
  for (const MapEntry& part :
       {Of(0x1000, 0x5000, 7), Of(0x2000, 0x3000, 7, 0x1000), Of(0x1000, 0x2000, 7)}) {
    const std::optional<PlacedCode> back = known_.CameBack(part, nullptr);
    ASSERT_TRUE(back.has_value()) << part.start;
    EXPECT_EQ(back->mapping, id);
    EXPECT_EQ(back->entry, part);
  }
  for (const MapEntry& other :
       {Of(0x2000, 0x3000, 7, 0x2000), Of(0x2000, 0x3000, 8, 0x1000),
        Of(0x4000, 0x6000, 7, 0x3000), Of(0x0, 0x1000, 7)})
    EXPECT_FALSE(known_.CameBack(other, nullptr).has_value()) << other.start;
}

TEST_F(KnownCodeTest, WhatLayThereIsForgottenAndOthersAreCounted) {
  Add(Of(0x1000, 0x2000));
  Add(Of(0x2000, 0x3000));
  Add(Of(0x4000, 0x5000));
  EXPECT_EQ(known_.Clear(Of(0x1800, 0x2800)), 2U);
  EXPECT_FALSE(known_.HasCodeAt(0x1000));
  EXPECT_FALSE(known_.HasCodeAt(0x2fff));
  EXPECT_TRUE(known_.HasCodeAt(0x4fff));
  EXPECT_FALSE(known_.HasCodeAt(0x5000));
  EXPECT_EQ(known_.Clear(Of(0x3000, 0x8000)), 0U) << "a part of what is there now";
  EXPECT_FALSE(known_.HasCodeAt(0x4000));
}

TEST_F(KnownCodeTest, FileAndCodeWithoutOneAreToldApart) {
  EXPECT_FALSE(known_.has_any_without_file());
  const MappingId id = Add(Of(0x1000, 0x2000));
  EXPECT_TRUE(known_.has_any_without_file());
  EXPECT_EQ(known_.ModuleOf(id), nullptr);
  EXPECT_FALSE(known_.OpenFileOf(mappings_[id]).valid());
  EXPECT_EQ(mappings_[id].start, 0x1000U);
  EXPECT_GT(known_.bytes(), sizeof(Mapping));
}

TEST_F(KnownCodeTest, SoMuchIsAdded) {
  uint64_t added = 0;
  for (uint64_t i = 0; i < 70'000; ++i)
    added += Add(Of(i << 12, (i + 1) << 12)) != kNoId ? 1U : 0U;
  EXPECT_EQ(added, 65'536U);
  EXPECT_TRUE(known_.is_full());
}

TEST_F(KnownCodeTest, IdsOutliveTheirPlaces) {
  const MappingId id = Add(Of(0x1000, 0x2000));
  known_.ForgetPlaces();
  EXPECT_FALSE(known_.HasCodeAt(0x1000));
  EXPECT_EQ(known_.ModuleOf(id), nullptr);
  EXPECT_EQ(mappings_[id].end, 0x2000U);
}

}  // namespace
}  // namespace heapprofd
