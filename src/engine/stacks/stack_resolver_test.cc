// Stacks of this very process, as a client would name them.
#include "engine/stacks/stack_resolver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/target/test_target.h"
#include "walk/stack_hash.h"
#include "wire/allocation_function.h"

namespace heapprofd {
namespace {

class StackResolverTest : public testing::Test {
 protected:
  StackResolverTest()
      : memory_(SharedMemory::Create(64 * 1024).value()),
        reader_(&memory_->client().ring, memory_->ring(), memory_->ring_size()),
        code_(getpid(), &modules_, &profile_.mappings),
        resolver_({.profile = &profile_,
                   .memory = memory_.get(),
                   .reader = &reader_,
                   .code = &code_,
                   .clock = &clock_}) {
    clock_.Update();
  }

  void SetUp() override { ASSERT_TRUE(code_.Refresh().ok()); }

  CallsiteId Resolve(const std::vector<uint64_t>& keys,
                     uint64_t outer_hash = kEmptyStackHash) {
    SampleParts sample;
    sample.record.outer_hash = outer_hash;
    sample.keys = keys;
    return resolver_.CallsiteOf(sample, /*may_grow=*/true, /*is_settled=*/false);
  }

  static uint64_t HashOf(const std::vector<uint64_t>& keys) {
    uint64_t hash = kEmptyStackHash;
    for (size_t i = keys.size(); i-- > 0;)
      hash = ExtendStackHash(hash, keys[i]);
    return hash;
  }

  const Frame& FrameOf(CallsiteId callsite) const {
    return profile_.frames[profile_.callsites[callsite].frame];
  }

  std::string NameOf(CallsiteId callsite) const {
    const Frame& frame = FrameOf(callsite);
    return frame.lines.empty() ? "" : frame.lines[0].function.str();
  }

  uint32_t StacksEpoch() const {
    return memory_->engine().control.known_stacks_epoch.load();
  }

  TargetProfile profile_;
  ModuleCache modules_{kOwnPatienceNs};
  TscClock clock_;
  std::unique_ptr<SharedMemory> memory_;
  RingReader reader_;
  AddressSpace code_;
  StackResolver resolver_;
};

TEST_F(StackResolverTest, AStackIsKnownByItsHashFromThenOn) {
  const std::vector<uint64_t> keys = {KeyInOwnCode(4), KeyInOwnCode(8)};
  const CallsiteId callsite = Resolve(keys);
  EXPECT_EQ(Resolve({}, HashOf(keys)), callsite);
  EXPECT_EQ(Resolve({keys[0]}, HashOf({keys[1]})), callsite);  // so are its outer parts
  EXPECT_EQ(profile_.callsites.size(), 2u);
  EXPECT_EQ(profile_.quality.walked_samples, 3u);
  EXPECT_EQ(profile_.quality.unknown_stacks, 0u);
  EXPECT_LT(FrameOf(callsite).mapping, profile_.mappings.size());
}

TEST_F(StackResolverTest, AHashThatNeverArrivedHasAllStacksSentAnew) {
  const uint32_t epoch = StacksEpoch();
  EXPECT_EQ(NameOf(Resolve({KeyInOwnCode(4)}, /*outer_hash=*/77)), "[stack lost]");
  EXPECT_EQ(profile_.quality.unknown_stacks, 1u);
  EXPECT_NE(StacksEpoch(), epoch);
}

TEST_F(StackResolverTest, WithoutMemoryThereAreNoNewStacks) {
  SampleParts sample;
  sample.record.outer_hash = kEmptyStackHash;
  const std::vector<uint64_t> keys = {KeyInOwnCode(4)};
  sample.keys = keys;
  const CallsiteId callsite =
      resolver_.CallsiteOf(sample, /*may_grow=*/false, /*is_settled=*/false);
  EXPECT_EQ(callsite, resolver_.TooManyStacks());
  EXPECT_EQ(NameOf(callsite), "[too many stacks]");
  EXPECT_EQ(profile_.quality.walked_samples, 0u);
}

TEST_F(StackResolverTest, TheFunctionIsInsideOfTheStackAndLabelsAreOutside) {
  memcpy(memory_->client().labels[1].key, "tenant", 7);
  memcpy(memory_->client().labels[1].value, "acme", 5);
  const std::vector<uint64_t> keys = {KeyInOwnCode(4)};
  SampleParts sample;
  sample.record.outer_hash = kEmptyStackHash;
  sample.record.function = static_cast<uint8_t>(AllocationFunction::kCalloc);
  sample.keys = keys;
  sample.labels = 1;
  const CallsiteId callsite =
      resolver_.CallsiteOf(sample, /*may_grow=*/true, /*is_settled=*/false);
  EXPECT_EQ(NameOf(callsite), "calloc");
  const CallsiteId stack = profile_.callsites[callsite].parent;
  EXPECT_EQ(FrameOf(stack).rel_pc,
            profile_.mappings[FrameOf(stack).mapping].ToRelPc(keys[0] - 1));
  EXPECT_EQ(NameOf(profile_.callsites[stack].parent), "tenant=acme");
}

// A stack that was read before the change means what it meant then.
TEST_F(StackResolverTest, AfterAnUnloadingAllIsDerivedAnew) {
  void* place =
      mmap(nullptr, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  const std::vector<uint64_t> keys = {reinterpret_cast<uint64_t>(place) + 16};
  const CallsiteId before = Resolve(keys);
  const uint32_t epoch = StacksEpoch();
  munmap(place, kPageSize);
  memory_->client().ring.modules_epoch.store(1);
  resolver_.OnModulesChanged();
  EXPECT_NE(StacksEpoch(), epoch);
  EXPECT_EQ(memory_->engine().control.rules_epoch.load(), 1u);
  EXPECT_EQ(Resolve({}, HashOf(keys)), before);
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(
      mmap(place, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0),
      place);
  close(file);
  const CallsiteId after = Resolve(keys);
  munmap(place, kPageSize);
  EXPECT_NE(after, before);
  EXPECT_FALSE(profile_.mappings[FrameOf(after).mapping].path.empty());
}

TEST_F(StackResolverTest, WhatWasSentIsCountedAsDear) {
  const std::vector<uint64_t> keys = {KeyInOwnCode(4)};
  const uint64_t dear = resolver_.dear_steps();
  SampleParts sample;
  sample.record.flags = kSampleHasStackCopy;
  sample.copy.key = keys[0];
  resolver_.CallsiteOf(sample, /*may_grow=*/true, /*is_settled=*/true);
  EXPECT_GT(resolver_.dear_steps(), dear);
  EXPECT_EQ(profile_.quality.copied_samples, 1u);
  EXPECT_EQ(profile_.quality.settled_copies, 1u);
}

TEST_F(StackResolverTest, IncompleteStacksAreCounted) {
  Resolve({KeyInOwnCode(4)}, /*outer_hash=*/0);
  SampleParts cut;
  cut.record.outer_hash = kEmptyStackHash;
  cut.record.flags = kSampleTooDeep | kSampleCut;
  resolver_.CallsiteOf(cut, /*may_grow=*/true, /*is_settled=*/false);
  EXPECT_EQ(profile_.quality.truncated_stacks, 2u);
  EXPECT_EQ(profile_.quality.unwind_errors, 1u);
}

}  // namespace
}  // namespace heapprofd
