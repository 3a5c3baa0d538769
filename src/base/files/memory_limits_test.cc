#include "base/files/memory_limits.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string Status(uint64_t size_mib, uint64_t locked_mib, const char* rights) {
  return "Name:\tx\nVmSize:\t " + std::to_string(size_mib * 1024) + " kB\nVmLck:\t " +
         std::to_string(locked_mib * 1024) + " kB\nCapEff:\t" + rights + "\n";
}

std::string Limits(const char* locked, const char* space) {
  return std::string("Limit                     Soft Limit           Hard Limit\n") +
         "Max locked memory         " + locked + "              x   bytes\n" +
         "Max address space         " + space + "            x     bytes\n";
}

constexpr char kNoRights[] = "0000000000000000";
constexpr char kMayLock[] = "0000000000004000";

TEST(MemoryLimitsTest, WhatCouldLockItselfWholeMustBeAbleToStill) {
  const std::string limits = Limits("8388608", "unlimited");
  EXPECT_TRUE(IsMemoryLimited(Status(4, 0, kNoRights), limits, 16 * kMiB));
  EXPECT_FALSE(IsMemoryLimited(Status(4, 0, kNoRights), limits, 2 * kMiB));
  EXPECT_FALSE(IsMemoryLimited(Status(9, 0, kNoRights), limits, 16 * kMiB));
  EXPECT_FALSE(IsMemoryLimited(Status(4, 0, kMayLock), limits, 16 * kMiB));
  EXPECT_FALSE(IsMemoryLimited(Status(4, 0, kNoRights), Limits("unlimited", "unlimited"),
                               16 * kMiB));
}

TEST(MemoryLimitsTest, WhatIsLockedCostsMemory) {
  EXPECT_TRUE(IsMemoryLimited(Status(400, 400, kMayLock),
                              Limits("unlimited", "unlimited"), 16 * kMiB));
}

TEST(MemoryLimitsTest, TheAddressSpaceHasRoomOrNot) {
  const std::string limits = Limits("unlimited", "33554432");
  EXPECT_TRUE(IsMemoryLimited(Status(20, 0, kMayLock), limits, 16 * kMiB));
  EXPECT_FALSE(IsMemoryLimited(Status(10, 0, kMayLock), limits, 16 * kMiB));
}

TEST(MemoryLimitsTest, WhatIsNotThereLimitsNothing) {
  EXPECT_FALSE(IsMemoryLimited("", "", 16 * kMiB));
  EXPECT_EQ(LimitIn("", "Max locked memory"), std::nullopt);
  EXPECT_EQ(SizeIn("", "VmSize"), 0u);
}

}  // namespace
}  // namespace heapprofd
