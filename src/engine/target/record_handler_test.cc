// Records one by one, as they would come out of a ring.
#include "engine/target/record_handler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "engine/target/published_config.h"
#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

class Events : public AllocationEvents {
 public:
  void OnAllocation(pid_t pid, const AllocationEvent& event) override {
    seen.push_back(std::to_string(pid) + "+" + std::to_string(event.address));
  }

  void OnFree(pid_t pid, uint64_t address, uint32_t /*heap_id*/) override {
    seen.push_back(std::to_string(pid) + "-" + std::to_string(address));
  }

  std::vector<std::string> seen;
};

class RecordHandlerTest : public testing::Test {
 protected:
  static constexpr int32_t kPid = 7;

  RecordHandlerTest() {
    profile_.process.pid = kPid;
    account_.Begin(
        {.heaps = &heaps_, .stacks = &stacks_, .max_live_samples = kMaxLiveSamples});
    clock_.Update();
  }

  bool Handle(RecordType type, std::span<const std::byte> payload) {
    return handler_.Handle({.type = type, .payload = payload});
  }

  template <typename Record>
  bool HandleRecord(RecordType type, const Record& record) {
    return Handle(type, std::as_bytes(std::span(&record, 1)));
  }

  static FreeRecord FreeOf(uint64_t address, bool is_realloc = false) {
    return {.address = address,
            .tsc = __builtin_ia32_rdtsc(),
            .thread_id = 1,
            .heap_id = 0,
            .is_realloc = is_realloc ? uint8_t{1} : uint8_t{0},
            .reserved = 0};
  }

  static MarkRecord MarkOf(const char* name) {
    MarkRecord mark{.tsc = __builtin_ia32_rdtsc(), .name = {}};
    memcpy(mark.name, name, strlen(name));
    return mark;
  }

  TargetProfile profile_;
  ModuleCache modules_;
  TscClock clock_;
  AddressSpace code_{getpid(), &modules_, &profile_.mappings};
  ProgramRequests requests_{&profile_};
  TargetAccount account_{getuid(),
                         {.profile = &profile_, .requests = &requests_, .code = &code_}};
  FollowedChildren children_{/*is_wanted=*/false, &profile_.forked};
  std::unique_ptr<SharedMemory> memory_ = SharedMemory::Create(64 * 1024).value();
  PublishedConfig published_{SessionConfig(), &memory_->engine()};
  TargetHeaps heaps_{memory_.get(), &published_};
  RingDrain ring_{memory_.get(), getpid(), &clock_};
  StackResolver stacks_{{.profile = &profile_,
                         .memory = memory_.get(),
                         .reader = &ring_.reader(),
                         .code = &code_,
                         .clock = &clock_}};
  TargetDumper dumper_{{.profile = &profile_,
                        .memory = memory_.get(),
                        .heaps = &heaps_,
                        .ring = &ring_,
                        .code = &code_,
                        .children = &children_}};
  RecordHandler handler_{{.profile = &profile_,
                          .clock = &clock_,
                          .heaps = &heaps_,
                          .stacks = &stacks_,
                          .account = &account_,
                          .requests = &requests_,
                          .dumper = &dumper_},
                         /*knows_threads=*/true};
};

TEST_F(RecordHandlerTest, WhatIsTooShortOrOfNoKindIsDamaged) {
  for (const RecordType type : {RecordType::kSample, RecordType::kFree, RecordType::kMark,
                                RecordType::kReallocFailed, RecordType::kDumpNow})
    EXPECT_FALSE(Handle(type, {}));
  EXPECT_FALSE(Handle(static_cast<RecordType>(200), {}));
  EXPECT_TRUE(Handle(RecordType::kModulesChanged, {}));
  EXPECT_EQ(profile_.quality.samples, 0u);
  EXPECT_TRUE(profile_.marks.empty());
}

TEST_F(RecordHandlerTest, SamplesAndFreesAreReportedToWhoeverWantsThem) {
  EXPECT_TRUE(HandleRecord(RecordType::kSample, TestSample(16, 100)));  // nobody does
  Events events;
  handler_.set_events(&events);
  EXPECT_TRUE(HandleRecord(RecordType::kSample, TestSample(32, 100)));
  EXPECT_TRUE(HandleRecord(RecordType::kFree, FreeOf(16)));
  EXPECT_TRUE(HandleRecord(RecordType::kReallocFailed, FreeOf(16)));
  EXPECT_EQ(events.seen, (std::vector<std::string>{"7+32", "7-16"}));
}

TEST_F(RecordHandlerTest, AReallocThatFailedLeavesTheBlockLive) {
  HandleRecord(RecordType::kSample, TestSample(16, 100));
  HandleRecord(RecordType::kFree, FreeOf(16, /*is_realloc=*/true));
  EXPECT_EQ(heaps_.live_samples(), 0u);
  HandleRecord(RecordType::kReallocFailed, FreeOf(16));
  EXPECT_EQ(heaps_.live_samples(), 1u);
}

TEST_F(RecordHandlerTest, WithoutRoomSamplesAreCountedAsRefused) {
  UserBudget::Account others(&UserBudget::OfEngine(), getuid());
  others.Set(uint64_t{1} << 60);
  const SampleRecord sample = TestSample(16, 100);
  for (int i = 0; i < 1024; ++i)
    HandleRecord(RecordType::kSample, sample);
  EXPECT_EQ(profile_.quality.refused_samples, 1024u);
  EXPECT_EQ(heaps_.live_samples(), 0u);
  EXPECT_EQ(profile_.quality.samples, 1024u);
}

TEST_F(RecordHandlerTest, TimesOfMarksAndDumpsNeverGoBack) {
  ASSERT_TRUE(HandleRecord(RecordType::kMark, MarkOf("first")));
  const uint64_t dear = handler_.dear_steps();
  MarkRecord early = MarkOf("dump");
  early.tsc = 0;
  ASSERT_TRUE(HandleRecord(RecordType::kDumpNow, early));
  EXPECT_GT(handler_.dear_steps(), dear);
  early.name[0] = 'l';
  ASSERT_TRUE(HandleRecord(RecordType::kMark, early));
  ASSERT_EQ(profile_.marks.size(), 2u);
  ASSERT_EQ(profile_.requested_dumps.size(), 1u);
  EXPECT_EQ(profile_.marks[1].name, "lump");
  EXPECT_EQ(profile_.requested_dumps[0][0].end_ns, profile_.marks[0].time_ns);
  EXPECT_EQ(profile_.marks[1].time_ns, profile_.marks[0].time_ns + 1);
}

}  // namespace
}  // namespace heapprofd
