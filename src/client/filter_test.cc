// The sampled-address filter against std::unordered_set. It may report too much where its
// slots overflow, never too little.
#include "client/filter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <unordered_set>
#include <vector>

namespace heapprofd {
namespace {

constexpr uint64_t kFoldMask = (1u << 19) - 1;
constexpr uint64_t kSlotsPerBucket = 64;

// The n-th address whose filter bit is the same as that of all others with `granule`.
uint64_t AddressOfGranule(uint64_t granule, uint64_t n) {
  return n << 24 | ((granule ^ n) & kFoldMask) << 5;
}

class FilterTest : public testing::Test {
 protected:
  FilterTest() { filter_->GiveMemory(memory_.get()); }

  std::unique_ptr<std::byte[]> memory_ =
      std::make_unique<std::byte[]>(SampledFilter::kMoreBytes);
  std::unique_ptr<SampledFilter> filter_ = std::make_unique<SampledFilter>();
};

TEST_F(FilterTest, AnEmptyFilterContainsNothing) {
  for (const uint64_t address : {uint64_t{0}, uint64_t{16}, uint64_t{0x7f1234567890},
                                 uint64_t{1} << 47, UINT64_MAX}) {
    EXPECT_FALSE(filter_->MayContain(address)) << address;
    EXPECT_FALSE(filter_->Remove(address)) << address;
  }
}

TEST_F(FilterTest, AnAddressIsRemovedOnce) {
  filter_->Insert(0x55550000);
  EXPECT_TRUE(filter_->MayContain(0x55550000));
  EXPECT_TRUE(filter_->Remove(0x55550000));
  EXPECT_FALSE(filter_->MayContain(0x55550000));
  EXPECT_FALSE(filter_->Remove(0x55550000));
}

TEST_F(FilterTest, AnOpenOneContainsEverythingForEver) {
  filter_->Insert(0x55550000);
  filter_->Open();
  for (const uint64_t address :
       {uint64_t{16}, uint64_t{0x55550000}, uint64_t{0x7f1234567890}, uint64_t{1} << 47,
        UINT64_MAX}) {
    filter_->Insert(address);
    EXPECT_TRUE(filter_->MayContain(address)) << address;
    EXPECT_TRUE(filter_->Remove(address)) << address;
    EXPECT_TRUE(filter_->MayContain(address)) << address;
    EXPECT_TRUE(filter_->Remove(address)) << address;
  }
  EXPECT_FALSE(filter_->MayContain(0)) << "to free null is to do nothing";
  EXPECT_FALSE(filter_->Remove(0));
}

TEST_F(FilterTest, AClosedOneContainsNothingUntilItIsUsedAgain) {
  filter_->Open();
  filter_->Insert(0x55550000);
  filter_->Close();
  EXPECT_FALSE(filter_->MayContain(0x55550000));
  EXPECT_FALSE(filter_->Remove(0x55550000));
  filter_->Insert(0x55550000);
  EXPECT_TRUE(filter_->MayContain(0x55550000));
  EXPECT_TRUE(filter_->Remove(0x55550000));
  EXPECT_FALSE(filter_->MayContain(0x55550000));
  EXPECT_FALSE(filter_->MayContain(0x66660000));
}

TEST_F(FilterTest, RandomUseBehavesLikeASetWhileNoBucketOverflows) {
  std::mt19937_64 random(2024);
  std::unordered_set<uint64_t> model;
  std::vector<uint64_t> live;
  std::vector<uint64_t>
      pool;  // dense heap, heaps of threads, few granules shared by many
  for (uint64_t i = 0; i < 4000; ++i)
    pool.push_back(0x555555559000 + 16 * (random() % 20'000));
  for (uint64_t i = 0; i < 4000; ++i)
    pool.push_back(0x7f0000000000 + (random() % 64 << 26) + 8 * (random() % 1'000'000));
  for (uint64_t i = 0; i < 200; ++i)
    pool.push_back(AddressOfGranule(i % 50 * 4099, 1 + i / 50));
  for (int step = 0; step < 500'000; ++step) {
    const uint64_t address = pool[random() % pool.size()];
    const bool is_live = model.contains(address);
    if (is_live) {
      ASSERT_TRUE(filter_->MayContain(address)) << step;
    }
    if (random() % 2 == 0 && !is_live) {
      filter_->Insert(address);
      model.insert(address);
    } else {
      ASSERT_EQ(filter_->Remove(address), is_live) << step << " " << address;
      model.erase(address);
    }
  }
  for (const uint64_t address : model)
    ASSERT_TRUE(filter_->Remove(address));
  for (const uint64_t address : pool)
    ASSERT_FALSE(filter_->MayContain(address));  // no bit stays behind
}

TEST_F(FilterTest, AddressesThatShareABitAreToldApart) {
  constexpr uint64_t kGranule = 0xabcde;
  filter_->Insert(AddressOfGranule(kGranule, 1));
  filter_->Insert(AddressOfGranule(kGranule, 2));
  EXPECT_FALSE(filter_->Remove(AddressOfGranule(kGranule, 3)));
  EXPECT_TRUE(filter_->Remove(AddressOfGranule(kGranule, 1)));
  EXPECT_FALSE(filter_->Remove(AddressOfGranule(kGranule, 1)));
  EXPECT_TRUE(filter_->MayContain(AddressOfGranule(kGranule, 2)));
  EXPECT_TRUE(filter_->Remove(AddressOfGranule(kGranule, 2)));
  EXPECT_FALSE(filter_->MayContain(AddressOfGranule(kGranule, 2)));
}

TEST_F(FilterTest, TheTwoEightByteHalvesOfAGranuleAreToldApart) {
  filter_->Insert(0x1000);
  EXPECT_FALSE(filter_->Remove(0x1008));
  filter_->Insert(0x1008);
  EXPECT_TRUE(filter_->Remove(0x1000));
  EXPECT_TRUE(filter_->MayContain(0x1008));
  EXPECT_TRUE(filter_->Remove(0x1008));
  EXPECT_FALSE(filter_->MayContain(0x1000));
}

TEST_F(FilterTest, ABucketOfSixtyFourAddressesIsExact) {
  constexpr uint64_t kGranule = 0x12345;
  for (uint64_t n = 1; n <= kSlotsPerBucket; ++n)
    filter_->Insert(AddressOfGranule(kGranule, n));
  EXPECT_FALSE(filter_->Remove(AddressOfGranule(kGranule, kSlotsPerBucket + 1)));
  for (uint64_t n = 1; n <= kSlotsPerBucket; ++n)
    EXPECT_TRUE(filter_->Remove(AddressOfGranule(kGranule, n)));
  EXPECT_FALSE(filter_->MayContain(AddressOfGranule(kGranule, 1)));
}

TEST_F(FilterTest, ABucketThatOverflowedReportsEveryAddressOfItsBitsForEver) {
  constexpr uint64_t kGranule = 0x12345;
  constexpr uint64_t kCount = kSlotsPerBucket + 8;
  for (uint64_t n = 1; n <= kCount; ++n)
    filter_->Insert(AddressOfGranule(kGranule, n));
  for (uint64_t n = 1; n <= kCount; ++n) {
    ASSERT_TRUE(filter_->MayContain(AddressOfGranule(kGranule, n)));
    ASSERT_TRUE(filter_->Remove(AddressOfGranule(kGranule, n))) << n;
  }
  for (uint64_t n = kSlotsPerBucket + 1; n <= kCount;
       ++n)  // the slots were full for these
    EXPECT_TRUE(filter_->MayContain(AddressOfGranule(kGranule, n)));
  EXPECT_TRUE(filter_->Remove(AddressOfGranule(kGranule, kCount + 1)));
  // Another bit of the same bucket was never set: certain as before.
  EXPECT_FALSE(filter_->MayContain(AddressOfGranule(kGranule ^ 1, 1)));
  EXPECT_FALSE(filter_->Remove(AddressOfGranule(kGranule ^ 1, 1)));
}

// What has overflowed by then is reported for ever, and nothing that comes later.
TEST(FilterMemoryTest, AFullBucketAsksForMemoryAndUsesIt) {
  constexpr uint64_t kGranule = 0x12345;
  constexpr uint64_t kOther = 0x54321;
  const auto filter = std::make_unique<SampledFilter>();
  uint64_t count = 0;
  while (filter->Insert(AddressOfGranule(kGranule, ++count))) {
    ASSERT_LT(count, kSlotsPerBucket);
  }
  EXPECT_TRUE(filter->MayContain(AddressOfGranule(kGranule, count)));
  EXPECT_TRUE(filter->Remove(AddressOfGranule(kGranule, count)));
  const auto memory = std::make_unique<std::byte[]>(SampledFilter::kMoreBytes);
  filter->GiveMemory(memory.get());
  for (uint64_t n = 1; n <= kSlotsPerBucket; ++n)
    EXPECT_TRUE(filter->Insert(AddressOfGranule(kOther, n)));
  EXPECT_FALSE(filter->Remove(AddressOfGranule(kOther, kSlotsPerBucket + 1)));
  for (uint64_t n = 1; n <= kSlotsPerBucket; ++n)
    EXPECT_TRUE(filter->Remove(AddressOfGranule(kOther, n)));
  EXPECT_FALSE(filter->MayContain(AddressOfGranule(kOther, 1)));
  // No memory would help these.
  EXPECT_TRUE(filter->Insert(0x7001));
}

TEST_F(FilterTest, AddressesWithoutAnExactTagAreReportedForEver) {
  for (const uint64_t address :
       {uint64_t{0x7001}, uint64_t{0x8004}, uint64_t{1} << 47,
        (uint64_t{1} << 47) + 0x650, UINT64_MAX, UINT64_MAX - 15}) {
    SampledFilter& filter = *(filter_ = std::make_unique<SampledFilter>());
    EXPECT_FALSE(filter.MayContain(address)) << address;
    filter.Insert(address);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(filter.MayContain(address)) << address;
      EXPECT_TRUE(filter.Remove(address)) << address;
    }
  }
}

TEST_F(FilterTest, AnAddressAboveUserSpaceDoesNotRemoveItsNamesakeBelow) {
  constexpr uint64_t kBelow = 0x7f0012345670;
  filter_->Insert(kBelow);
  EXPECT_FALSE(filter_->Remove(kBelow | uint64_t{1} << 47));
  EXPECT_TRUE(filter_->Remove(kBelow));
}

}  // namespace
}  // namespace heapprofd
