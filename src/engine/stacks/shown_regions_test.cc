#include "engine/stacks/shown_regions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <vector>

namespace heapprofd {
namespace {

class ShownRegionsTest : public testing::Test {
 protected:
  ShownRegionsTest()
      : shown_(std::make_unique<StackRegions>()),
        code_(getpid(), &modules_, &mappings_),
        regions_(shown_.get(), &code_, &clock_) {
    clock_.Update();
  }

  void SetUp() override { ASSERT_TRUE(code_.Refresh().ok()); }

  bool Holds(const void* address) const {
    const auto at = reinterpret_cast<uint64_t>(address);
    for (uint32_t i = 0; i < shown_->count.load(); ++i) {
      if (shown_->regions[i].low.load() <= at && at < shown_->regions[i].high.load())
        return true;
    }
    return false;
  }

  ModuleCache modules_;
  std::vector<Mapping> mappings_;
  TscClock clock_;
  std::unique_ptr<StackRegions> shown_;
  AddressSpace code_;
  ShownRegions regions_;
};

TEST_F(ShownRegionsTest, WhatCanBeWrittenIsShownInOrder) {
  EXPECT_TRUE(regions_.LookAgain());
  regions_.Show();
  int on_stack = 0;
  EXPECT_TRUE(Holds(&on_stack));
  EXPECT_FALSE(Holds(reinterpret_cast<const void*>(&getpid)));
  EXPECT_EQ(shown_->version.load() % 2, 0u);
  for (uint32_t i = 1; i < shown_->count.load(); ++i)
    EXPECT_LE(shown_->regions[i - 1].high.load(), shown_->regions[i].low.load());
}

TEST_F(ShownRegionsTest, TheMapsAreNotReadAgainAtOnce) {
  regions_.Show();
  const uint64_t refreshes = code_.refreshes();
  EXPECT_FALSE(regions_.LookAgain());
  EXPECT_EQ(code_.refreshes(), refreshes);
}

// Every second page can be written, so that none of them are one region.
TEST_F(ShownRegionsTest, OfTooManyTheHighestAreKept) {
  constexpr size_t kPages = 4 * kMaxStackRegions;
  auto* pages =
      static_cast<char*>(mmap(nullptr, kPages * kPageSize, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  for (size_t i = 0; i < kPages; i += 2)
    ASSERT_EQ(mprotect(pages + i * kPageSize, kPageSize, PROT_NONE), 0);
  ASSERT_TRUE(code_.Refresh().ok());
  regions_.Show();
  EXPECT_EQ(shown_->count.load(), kMaxStackRegions);
  EXPECT_FALSE(Holds(pages + kPageSize));
  int on_stack = 0;
  EXPECT_TRUE(Holds(&on_stack));
  munmap(pages, kPages * kPageSize);
}

}  // namespace
}  // namespace heapprofd
