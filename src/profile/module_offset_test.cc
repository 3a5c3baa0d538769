#include "profile/module_offset.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(ModuleOffsetTest, EveryAddressHasAModule) {
  TargetProfile profile;
  profile.mappings.resize(2);
  profile.mappings[0].path = "/lib/libc.so.6";
  const auto name = [&](MappingId mapping) {
    return ModuleOffset(profile, {.mapping = mapping, .rel_pc = 0x1234, .lines = {}});
  };
  EXPECT_EQ(name(0), "libc.so.6+0x1234");
  EXPECT_EQ(name(1), "[anonymous]+0x1234");
  EXPECT_EQ(name(kNoId), "[unknown]+0x1234");
}

}  // namespace
}  // namespace heapprofd
