// One target, played by this very process: records are written into its ring as the
// client would, and as a lying client would.
#include "engine/target/target.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "engine/target/test_target.h"

namespace heapprofd {
namespace {

constexpr size_t kAllRecords = 1'000'000;
const Target::Origin kOwn{.pid = getpid(), .thread = getpid(), .process = OwnProcess()};

class TargetTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.ring_size_bytes = 64 * 1024;
    auto target = Target::Create(kOwn, config_, &modules_, &clock_);
    ASSERT_TRUE(target.ok()) << target.status().message();
    target_ = std::move(target).value();
    SharedMemory& memory = target_->recorder().memory();
    writer_ = WriterOf(memory);
  }

  void Write(RecordType type, const std::vector<std::byte>& payload) {
    const auto reservation = writer_.Reserve(type, payload.size());
    ASSERT_NE(reservation.payload, nullptr);
    if (!payload.empty())
      memcpy(reservation.payload, payload.data(), payload.size());
    writer_.Commit(reservation);
  }

  // Of a stack whose keys are given innermost first.
  static uint64_t HashOf(const std::vector<uint64_t>& keys) { return HashOfStack(keys); }

  void WriteSample(SampleRecord record, const std::vector<uint64_t>& keys) {
    record.frame_count = static_cast<uint16_t>(keys.size());
    std::vector<std::byte> payload(sizeof(record) + 8 * keys.size());
    memcpy(payload.data(), &record, sizeof(record));
    if (!keys.empty())
      memcpy(payload.data() + sizeof(record), keys.data(), 8 * keys.size());
    Write(RecordType::kSample, payload);
  }

  void WriteFree(RecordType type, uint64_t address, bool is_realloc) {
    const FreeRecord record{.address = address,
                            .tsc = __builtin_ia32_rdtsc(),
                            .thread_id = 1,
                            .heap_id = 0,
                            .is_realloc = is_realloc ? uint8_t{1} : uint8_t{0},
                            .reserved = 0};
    std::vector<std::byte> payload(sizeof(record));
    memcpy(payload.data(), &record, sizeof(record));
    Write(type, payload);
  }

  // As the client does after each dlclose.
  void WriteModulesChanged() {
    target_->recorder().memory().client().ring.modules_epoch.fetch_add(1);
    Write(RecordType::kModulesChanged, {});
  }

  const HeapDump& DrainAndDump() {
    clock_.Update();
    do {
      target_->recorder().Drain(kAllRecords, /*writers_gone=*/false);
    } while (target_->recorder().ring().is_behind());
    target_->recorder().UpdateDump();
    return target_->profile().heaps.at(0);
  }

  std::string NameOf(CallsiteId callsite) const {
    const TargetProfile& profile = target_->profile();
    const Frame& frame = profile.frames[profile.callsites[callsite].frame];
    return frame.lines.empty() ? "" : frame.lines[0].function.str();
  }

  SessionConfig config_;
  ModuleCache modules_;
  TscClock clock_;
  std::unique_ptr<Target> target_;
  RingWriter writer_;
};

TEST_F(TargetTest, TheClientFindsItsParameters) {
  const SessionControl& control = target_->recorder().memory().engine().control;
  EXPECT_EQ(control.active.load(), 1u);
  EXPECT_EQ(control.interval.load(), config_.interval_bytes);
  EXPECT_GT(target_->recorder().memory().engine().stack_regions.count.load(), 0u);
  const uint64_t beat = control.heartbeat.load();
  target_->recorder().Tick(UINT64_MAX);
  EXPECT_NE(control.heartbeat.load(), beat);
  target_->Stop(TargetEnd::kExited);
  EXPECT_EQ(control.active.load(), 0u);
}

// Which takes a look at all processes, and is not to be had for nothing.
TEST_F(TargetTest, EndedOwnersOfForkSlotsAreLookedForOnlyInTimeThatIsGiven) {
  constexpr uint64_t kDeadlineNs = 60'000'000'000;
  constexpr uint64_t kOwner = kForkSlotOwned | (INT32_MAX - 1);  // nobody's number
  for (const bool follows : {false, true}) {
    config_.follow_children = follows;
    SetUp();
    ClientBlock& client = target_->recorder().memory().client();
    std::atomic<uint64_t>& owner = client.fork_slots[0].slot.thread_pointer;
    owner.store(kOwner);
    client.ring.fork_slot_count.store(kMaxForkSlots / 2);
    for (int i = 0; i < 100; ++i) {
      target_->recorder().Tick(UINT64_MAX);
      target_->children().FreeSlots(client, /*end_ns=*/0);
      target_->children().FreeSlots(client, follows ? 0 : UINT64_MAX);
    }
    EXPECT_EQ(owner.load(), kOwner);
    const uint64_t end_ns = MonotonicNs() + kDeadlineNs;
    while (follows && owner.load() != 0 && MonotonicNs() < end_ns)
      target_->children().FreeSlots(client, UINT64_MAX);
    EXPECT_EQ(owner.load(), follows ? 0 : kOwner);
  }
}

TEST_F(TargetTest, AllFreesAreReportedOnlyWhereAllAllocationsAreAndStay) {
  const auto reports_all = [this] {
    SetUp();
    return target_->recorder().memory().engine().control.reports_all_frees.load() != 0;
  };
  EXPECT_FALSE(reports_all());
  config_.interval_bytes = 1;
  EXPECT_TRUE(reports_all());
  config_.adaptive_threshold_bytes = 4096;
  EXPECT_FALSE(reports_all());
  config_.adaptive_threshold_bytes = 0;
  config_.when_full = WhenFull::kDrop;
  EXPECT_FALSE(reports_all());
  config_.when_full = WhenFull::kBlock;
  config_.stream_allocations = true;  // frees of blocks that nobody has seen
  EXPECT_FALSE(reports_all());
}

TEST_F(TargetTest, TheNumberOfLiveSamplesIsLimited) {
  config_.max_live_samples = 3000;
  SetUp();
  const auto write = [this](uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) {
      WriteSample(TestSample(16 * i, 10), {});
      if (i % 256 == 0)
        DrainAndDump();
    }
    return DrainAndDump().callsites.begin()->second;
  };
  const double before = write(1, 10'000).live().count;
  EXPECT_GE(before, 3000);
  EXPECT_LE(before, 3000 + 1024);
  EXPECT_EQ(target_->profile().quality.refused_samples,
            10'000 - static_cast<uint64_t>(before));
  for (uint64_t i = 1; i < 2000; ++i) {
    WriteFree(RecordType::kFree, 16 * i, /*is_realloc=*/false);
    if (i % 256 == 0)
      DrainAndDump();
  }
  EXPECT_GT(write(20'000, 2000).allocated.count, before);  // there is room again
}

// 24,576 live samples fill three quarters of 1 MiB.
TEST_F(TargetTest, ATableOnlyDoublesWhereThereIsRoomForBoth) {
  UserBudget& budget = UserBudget::OfEngine();
  UserBudget::Account others(&budget, target_->user());
  const auto write = [this](uint64_t first, uint64_t end) {
    for (uint64_t i = first; i < end; ++i) {
      WriteSample(TestSample(16 * i, 10), {});
      if (i % 256 == 0)
        DrainAndDump();
    }
    return DrainAndDump().callsites.begin()->second.live().count;
  };
  EXPECT_EQ(write(1, 20'001), 20'000);
  uint64_t room = 1;
  while (budget.HasRoom(target_->user(), room * 2))
    room *= 2;
  for (uint64_t step = room / 2; step > 0; step /= 2)
    room += budget.HasRoom(target_->user(), room + step) ? step : 0;
  constexpr uint64_t kLessThanTwice = 3 << 19;
  others.Set(room - kLessThanTwice);
  EXPECT_EQ(write(20'001, 30'001), 24'576);
  others.Set(0);
  EXPECT_GT(write(40'001, 42'001), 24'576);
}

TEST_F(TargetTest, TheFirstRecordIsWaitedForWhileItIsBeingWritten) {
  const auto reservation = writer_.Reserve(RecordType::kSample, sizeof(SampleRecord));
  ASSERT_NE(reservation.payload, nullptr);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(DrainAndDump().callsites.empty());
  const SampleRecord record = TestSample(0x10, 100);
  memcpy(reservation.payload, &record, sizeof(record));
  writer_.Commit(reservation);
  ASSERT_EQ(DrainAndDump().callsites.size(), 1u);
  EXPECT_EQ(target_->profile().quality.corrupt_records, 0u);
}

TEST_F(TargetTest, SamplesAndFreesBecomeSumsOfTheirCallsite) {
  const std::vector<uint64_t> keys = {KeyInOwnCode(4), KeyInOwnCode(8)};
  WriteSample(TestSample(0x10, 100), keys);
  WriteSample(TestSample(0x20, 30, HashOf(keys)), {});  // the stack is known by its hash
  WriteFree(RecordType::kFree, 0x10, false);
  const HeapDump& dump = DrainAndDump();
  ASSERT_EQ(dump.callsites.size(), 1u);
  const auto& [callsite, totals] = *dump.callsites.begin();
  EXPECT_EQ(totals.allocated.bytes, 130);
  EXPECT_EQ(totals.freed.bytes, 100);
  EXPECT_EQ(dump.peak_total.bytes, 130);
  EXPECT_EQ(target_->profile().quality.walked_samples, 2u);
  const TargetProfile& profile = target_->profile();
  const Frame& inner = profile.frames[profile.callsites[callsite].frame];
  ASSERT_LT(inner.mapping, profile.mappings.size());
  EXPECT_EQ(inner.rel_pc, profile.mappings[inner.mapping].ToRelPc(keys[0] - 1));
  EXPECT_NE(profile.callsites[callsite].parent, kNoId);
}

TEST_F(TargetTest, InnerFramesAreAddedToTheOuterOnesThatAreKnown) {
  const uint64_t outer = KeyInOwnCode(8);
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4), outer});
  WriteSample(TestSample(0x20, 30, HashOf({outer})), {KeyInOwnCode(2), KeyInOwnCode(6)});
  const HeapDump& dump = DrainAndDump();
  ASSERT_EQ(dump.callsites.size(), 2u);
  const std::vector<Callsite>& callsites = target_->profile().callsites;
  ASSERT_EQ(callsites.size(), 4u);  // outer, {4}, {6, 2}
  EXPECT_EQ(callsites[0].parent, kNoId);
  EXPECT_EQ(callsites[1].parent, 0u);
  EXPECT_EQ(callsites[2].parent, 0u);
  EXPECT_EQ(callsites[3].parent, 2u);
  EXPECT_NE(dump.callsites.find(3), dump.callsites.end());
  EXPECT_EQ(target_->profile().quality.unknown_stacks, 0u);
}

TEST_F(TargetTest, SamplesOfOtherHeapsHaveTheirOwnDumps) {
  ClientBlock& client = target_->recorder().memory().client();
  memcpy(client.heaps[9].name, "pool", 4);
  client.heaps[9].is_set.store(1);
  SampleRecord record = TestSample(0x10, 100);
  record.heap_id = 9;
  WriteSample(record, {KeyInOwnCode(4)});
  WriteSample(TestSample(0x10, 30, HashOf({KeyInOwnCode(4)})), {});
  WriteFree(RecordType::kFree, 0x10, false);  // malloc's, not the pool's
  DrainAndDump();
  const std::vector<HeapDump>& heaps = target_->profile().heaps;
  ASSERT_EQ(heaps.size(), 1u);  // malloc has no calls: it was not hooked
  EXPECT_EQ(heaps[0].heap_name, "pool");
  EXPECT_EQ(heaps[0].callsites.begin()->second.live().bytes, 100);
}

TEST_F(TargetTest, LabelsAreRootsOfTheStack) {
  ClientBlock& client = target_->recorder().memory().client();
  memcpy(client.labels[1].key, "ten=ant", 7);
  memcpy(client.labels[1].value, "acme\n", 5);
  const std::vector<uint64_t> keys = {KeyInOwnCode(4), KeyInOwnCode(8)};
  SampleRecord record = TestSample(0x10, 100);
  record.flags = kSampleHasLabels;
  record.frame_count = 2;
  const uint64_t labels = uint64_t{1} << 16 | kTooManyLabels;
  std::vector<std::byte> payload(sizeof(record) + 8 + 16);
  memcpy(payload.data(), &record, sizeof(record));
  memcpy(payload.data() + sizeof(record), &labels, 8);
  memcpy(payload.data() + sizeof(record) + 8, keys.data(), 16);
  Write(RecordType::kSample, payload);
  const HeapDump& dump = DrainAndDump();
  ASSERT_EQ(dump.callsites.size(), 1u);
  CallsiteId at = dump.callsites.begin()->first;
  const auto& callsites = target_->profile().callsites;
  at = callsites[callsites[at].parent].parent;
  EXPECT_EQ(NameOf(at), "label=[too many labels]");
  EXPECT_EQ(NameOf(callsites[at].parent), "ten_ant=acme_");
  EXPECT_TRUE(target_->profile().frames[callsites[at].frame].is_label);
}

TEST_F(TargetTest, TheFunctionThatWasCalledIsTheInnermostFrame) {
  const auto write = [this](uint64_t address, AllocationFunction function) {
    SampleRecord record = TestSample(address, 100);
    record.function = static_cast<uint8_t>(function);
    WriteSample(record, {KeyInOwnCode(4)});
  };
  write(0x10, AllocationFunction::kCalloc);
  write(0x20, AllocationFunction::kNewNothrow);
  write(0x30, AllocationFunction::kCalloc);
  write(0x40, AllocationFunction::kUnknown);
  write(0x50, AllocationFunction::kCount);  // of a later version, or made up
  const HeapDump& dump = DrainAndDump();
  const TargetProfile& profile = target_->profile();
  std::map<std::string, double> live;
  for (const auto& [callsite, totals] : dump.callsites) {
    const Frame& frame = profile.frames[profile.callsites[callsite].frame];
    live[frame.is_allocator ? frame.lines[0].function.str() : ""] += totals.live().bytes;
    if (frame.is_allocator) {
      EXPECT_EQ(profile.callsites[callsite].parent, 0u);
    }
  }
  EXPECT_EQ(live, (std::map<std::string, double>{
                      {"", 200},
                      {"calloc", 200},
                      {"operator new(unsigned long, std::nothrow_t const&)", 100}}));
}

TEST_F(TargetTest, MarksAndRequestedDumpsAreKept) {
  MarkRecord mark{.tsc = __builtin_ia32_rdtsc(), .name = {}};
  memset(mark.name, 'm', sizeof(mark.name));  // no terminating zero
  std::vector<std::byte> payload(sizeof(mark));
  memcpy(payload.data(), &mark, sizeof(mark));
  Write(RecordType::kMark, payload);
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4)});
  Write(RecordType::kDumpNow, payload);
  WriteSample(TestSample(0x20, 100, HashOf({KeyInOwnCode(4)})), {});
  Write(RecordType::kMark, {});  // too short
  EXPECT_EQ(DrainAndDump().callsites.begin()->second.live().bytes, 200);
  const TargetProfile& profile = target_->profile();
  ASSERT_EQ(profile.marks.size(), 1u);
  EXPECT_EQ(profile.marks[0].name, std::string(63, 'm'));
  ASSERT_EQ(profile.requested_dumps.size(), 1u);
  EXPECT_EQ(profile.requested_dumps[0][0].callsites.begin()->second.live().bytes, 100);
  EXPECT_EQ(profile.quality.corrupt_records, 1u);
}

// Each is an event in the trace.
TEST_F(TargetTest, MarksHaveABoundForOneTargetAndForAllOfAUser) {
  constexpr uint64_t kMost = 10'000;
  constexpr uint64_t kMany = kMost + 5;
  UserBudget budget(kMost + 1, 2 * kMost);
  auto other = Target::Create(kOwn, config_, &modules_, &clock_);
  ASSERT_TRUE(other.ok());
  const auto mark = [&](Target& target) {
    target.requests().set_budget(&budget, target.user());
    SharedMemory& memory = target.recorder().memory();
    writer_ = WriterOf(memory);
    for (uint64_t i = 0; i < kMany; ++i) {
      Write(RecordType::kMark, std::vector<std::byte>(sizeof(MarkRecord)));
      if (i % 100 == 0)
        target.recorder().Drain(kAllRecords, /*writers_gone=*/true);
    }
    while (target.recorder().Drain(kAllRecords, /*writers_gone=*/true) > 0) {
    }
    EXPECT_EQ(target.profile().marks.size() + target.profile().quality.refused_marks,
              kMany);
    return target.profile().marks.size();
  };
  EXPECT_EQ(mark(*target_), kMost);
  EXPECT_EQ(mark(*other.value()), 1u);
  target_.reset();
  other.value().reset();
}

// The order of two moments that the clock cannot tell apart is kept, and there is room
// between them for a time of each heap's dump.
TEST_F(TargetTest, MarksAreBeforeAndAfterTheDumpBetweenThem) {
  ClientBlock& client = target_->recorder().memory().client();
  for (const size_t id : {size_t{1}, size_t{2}}) {
    memcpy(client.heaps[id].name, id == 1 ? "pool" : "area", 5);
    client.heaps[id].is_set.store(1);
  }
  target_->recorder().memory().engine().heap_rules.other_interval = 1;
  const MarkRecord mark{.tsc = ~uint64_t{0}, .name = {}};  // each is "now"
  std::vector<std::byte> payload(sizeof(mark));
  memcpy(payload.data(), &mark, sizeof(mark));
  Write(RecordType::kMark, payload);
  Write(RecordType::kDumpNow, payload);
  Write(RecordType::kMark, payload);
  DrainAndDump();
  const TargetProfile& profile = target_->profile();
  ASSERT_EQ(profile.marks.size(), 2u);
  ASSERT_EQ(profile.requested_dumps.size(), 1u);
  ASSERT_EQ(profile.requested_dumps[0].size(), 2u);
  const uint64_t dump_ns = profile.requested_dumps[0][0].end_ns;
  EXPECT_LE(profile.marks[0].time_ns, dump_ns);
  EXPECT_GE(profile.marks[1].time_ns, dump_ns + 2);
}

// A program that has said that it ends, and goes on, must not have more than its turn.
TEST_F(TargetTest, TheLookAtAnExitIsLeftForATurnWithTime) {
  config_.ask_allocator = true;
  auto target = Target::Create(kOwn, config_, &modules_, &clock_);
  ASSERT_TRUE(target.ok());
  Target& ending = *target.value();
  SharedMemory& memory = ending.recorder().memory();
  writer_ = WriterOf(memory);
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4)});
  memory.client().ring.exiting.store(1);
  ending.recorder().Tick(/*end_ns=*/0);
  EXPECT_EQ(ending.recorder().ring().position(), 0u);
  EXPECT_EQ(memory.client().ring.exit_seen.load(), 0u);
  ending.recorder().Tick(UINT64_MAX);
  EXPECT_GT(ending.recorder().ring().position(), 0u);
  EXPECT_EQ(memory.client().ring.exit_seen.load(), 1u);
}

// Heaps without a call site, too: each is written, kept and read again.
TEST_F(TargetTest, RequestedDumpsOfManyHeapsHaveABoundForAllTargetsOfAUser) {
  constexpr uint64_t kSmall = 10'000;
  constexpr int kAsked = 20;
  UserBudget budget(kSmall, 2 * kSmall);
  auto other = Target::Create(kOwn, config_, &modules_, &clock_);
  ASSERT_TRUE(other.ok());
  const auto request = [&](Target& target) {
    target.requests().set_budget(&budget, target.user());
    SharedMemory& memory = target.recorder().memory();
    for (size_t id = 1; id < kMaxHeaps; ++id) {
      memcpy(memory.client().heaps[id].name, "pool", 5);
      memory.client().heaps[id].is_set.store(1);
    }
    memory.engine().heap_rules.other_interval = 1;
    writer_ = WriterOf(memory);
    for (int i = 0; i < kAsked; ++i)
      Write(RecordType::kDumpNow, std::vector<std::byte>(sizeof(MarkRecord)));
    while (target.recorder().Drain(kAllRecords, /*writers_gone=*/true) > 0) {
    }
    EXPECT_EQ(
        target.profile().requested_dumps.size() + target.profile().quality.refused_dumps,
        static_cast<size_t>(kAsked));
    return target.profile().requested_dumps.size();
  };
  const size_t made = request(*target_);
  EXPECT_GE(made, 1u);
  EXPECT_LE(made, 4u);
  EXPECT_EQ(request(*other.value()), 0u);
  EXPECT_TRUE(budget.HasRoom(getuid() + 1));
  target_.reset();
  other.value().reset();
}

TEST_F(TargetTest, AFailedReallocIsUndone) {
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4)});
  WriteFree(RecordType::kFree, 0x10, true);
  WriteFree(RecordType::kReallocFailed, 0x10, false);
  EXPECT_EQ(DrainAndDump().callsites.begin()->second.live().bytes, 100);
}

TEST_F(TargetTest, AStackThatNeverArrivedIsNamedAndSentAnew) {
  const uint32_t epoch =
      target_->recorder().memory().engine().control.known_stacks_epoch.load();
  WriteSample(TestSample(0x10, 100, /*outer_hash=*/77), {KeyInOwnCode(4)});
  const HeapDump& dump = DrainAndDump();
  EXPECT_EQ(NameOf(dump.callsites.begin()->first), "[stack lost]");
  EXPECT_EQ(target_->profile().quality.unknown_stacks, 1u);
  EXPECT_NE(target_->recorder().memory().engine().control.known_stacks_epoch.load(),
            epoch);
}

TEST_F(TargetTest, TruncatedStacksAreCounted) {
  WriteSample(TestSample(0x10, 100, 0), {KeyInOwnCode(4)});
  SampleRecord too_deep = TestSample(0x20, 100);
  too_deep.flags = kSampleTooDeep;
  WriteSample(too_deep, {KeyInOwnCode(4)});
  DrainAndDump();
  EXPECT_EQ(target_->profile().quality.truncated_stacks, 2u);
}

TEST_F(TargetTest, AnAddressOutsideEveryMappingIsAFrameWithoutOne) {
  WriteSample(TestSample(0x10, 100), {0x1234});
  const CallsiteId callsite = DrainAndDump().callsites.begin()->first;
  const TargetProfile& profile = target_->profile();
  const Frame& frame = profile.frames[profile.callsites[callsite].frame];
  EXPECT_EQ(frame.mapping, kNoId);
  EXPECT_EQ(frame.rel_pc, 0x1233u);
  EXPECT_EQ(target_->profile().quality.unmapped_frames, 1u);
}

// Of a process that says Hello again and again, as programs do that execute others.
TEST_F(TargetTest, WhatIsKeptOfOneThatHasEndedIsSmallAndAccountedFor) {
  constexpr size_t kTargets = 100;
  const uint64_t accounted = UserBudget::OfEngine().used();
  std::vector<std::unique_ptr<Target>> targets;
  targets.reserve(kTargets);
  const size_t before = mallinfo2().uordblks;
  for (size_t i = 0; i < kTargets; ++i) {
    auto target = Target::Create(kOwn, config_, &modules_, &clock_);
    ASSERT_TRUE(target.ok()) << target.status().message();
    target.value()->recorder().UpdateDump();
    target.value()->ReleaseRecorder();
    targets.push_back(std::move(target).value());
  }
  const size_t kept = mallinfo2().uordblks - before;
  const uint64_t said = UserBudget::OfEngine().used() - accounted;
  EXPECT_LT(kept / kTargets, 32u << 10);
  EXPECT_GT(said, kept / 2);
  if (kept > 0) {  // not with an allocator that keeps no such account
    EXPECT_LT(said, kept * 3);
  }
  targets.clear();
  EXPECT_EQ(UserBudget::OfEngine().used(), accounted);
}

TEST_F(TargetTest, WhatIsKeptOfOneThatHasEndedNeedsNoDescriptors) {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = count();
  std::vector<std::unique_ptr<Target>> targets;
  for (int i = 0; i < 20; ++i) {
    auto target = Target::Create(kOwn, config_, &modules_, &clock_);
    ASSERT_TRUE(target.ok()) << target.status().message();
    target.value()->recorder().UpdateDump();
    target.value()->ReleaseRecorder();
    targets.push_back(std::move(target).value());
  }
  EXPECT_EQ(count(), before);
}

TEST_F(TargetTest, WhatIsNotReadInTimeCountsAsLost) {
  for (uint64_t i = 0; i < 3; ++i)
    WriteSample(TestSample(0x10 * i, 100), {KeyInOwnCode(4)});
  EXPECT_EQ(target_->recorder().Drain(1, /*writers_gone=*/true), 1u);
  target_->recorder().LoseRest(/*writers_gone=*/true);
  target_->recorder().UpdateDump();
  EXPECT_EQ(target_->profile().quality.samples, 1u);
  EXPECT_EQ(target_->profile().quality.lost_records, 2u);
}

TEST_F(TargetTest, BadRecordsAreCountedAndTheRestIsRead) {
  Write(RecordType::kSample, {});
  Write(RecordType::kSample, std::vector<std::byte>(80));
  Write(RecordType::kFree, std::vector<std::byte>(32));
  Write(static_cast<RecordType>(200), {});
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4)});
  EXPECT_EQ(DrainAndDump().callsites.size(), 1u);
  EXPECT_EQ(target_->profile().quality.corrupt_records, 4u);
  EXPECT_EQ(target_->profile().quality.samples, 1u);
}

TEST_F(TargetTest, TheExactTotalsAreSummedOverTheUsedSlots) {
  ClientBlock& client = target_->recorder().memory().client();
  client.ring.slot_count.store(2);
  for (uint64_t i = 0; i < 3; ++i) {
    client.slots[i].calls = 10;
    client.slots[i].granted = 5000;
    client.slots[i].bytes_left = 1000;
  }
  EXPECT_EQ(DrainAndDump().exact_alloc_calls, 20u);
  EXPECT_EQ(target_->profile().heaps[0].exact_alloc_bytes, 8000u);
  client.ring.slot_count.store(UINT32_MAX);
  EXPECT_EQ(DrainAndDump().exact_alloc_calls, 30u);
}

TEST_F(TargetTest, TheLastDumpHasTheShapesOfBlocks) {
  for (uint64_t i = 1; i <= 3; ++i)
    WriteSample(TestSample(16 * i, 100), {KeyInOwnCode(4)});
  WriteFree(RecordType::kFree, 16, /*is_realloc=*/false);
  EXPECT_TRUE(DrainAndDump().shapes.empty());
  target_->recorder().FinishDump();
  std::map<ShapeKind, double> counts;
  for (const ShapeRow& row : target_->profile().heaps[0].shapes) {
    EXPECT_EQ(row.callsite, target_->profile().heaps[0].callsites.begin()->first);
    counts[row.kind] += row.estimate.count;
  }
  EXPECT_EQ(counts[ShapeKind::kAllocatedSize], 3);
  EXPECT_EQ(counts[ShapeKind::kLiveSize], 2);
  EXPECT_EQ(counts[ShapeKind::kAge], 2);
  EXPECT_EQ(counts[ShapeKind::kLifetime], 1);
}

TEST_F(TargetTest, LiveBlocksAreListedForThoseWhoAsk) {
  for (const bool asks : {false, true}) {
    config_.list_live_blocks = asks;
    SetUp();
    for (uint64_t i = 1; i <= 3; ++i)
      WriteSample(TestSample(16 * i, 100 * i), {KeyInOwnCode(4)});
    WriteFree(RecordType::kFree, 16, /*is_realloc=*/false);
    EXPECT_TRUE(DrainAndDump().blocks.empty());
    target_->recorder().FinishDump();
    const HeapDump& dump = target_->profile().heaps[0];
    ASSERT_EQ(dump.blocks.size(), asks ? 2u : 0u);
    if (!asks)
      continue;
    EXPECT_EQ(dump.blocks[0].address, 32u);
    EXPECT_EQ(dump.blocks[1].size, 300u);
    EXPECT_EQ(dump.blocks[1].callsite, dump.callsites.begin()->first);
  }
}

TEST_F(TargetTest, TheLastDumpStandsWhenTheRecorderIsReleased) {
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4)});
  DrainAndDump();
  target_->ReleaseRecorder();
  EXPECT_FALSE(target_->is_recording());
  EXPECT_EQ(target_->profile().heaps[0].callsites.size(), 1u);
}

TEST_F(TargetTest, GarbageInTheRingEndsAndIsCounted) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    SharedMemory& memory = target_->recorder().memory();
    auto* bytes = const_cast<std::byte*>(memory.ring());
    const uint64_t start = memory.client().ring.write_position.load() / 8 * 8;
    const uint64_t end = start + memory.ring_size() / 2;
    for (uint64_t at = start; at < end; at += 8) {
      uint64_t word = random();
      if (random() % 4 == 0) {
        const RecordHeader header{.tag = RecordTag(at),
                                  .words = static_cast<uint16_t>(random() % 40),
                                  .type = static_cast<RecordType>(random() % 6),
                                  .state = RecordState::kCommitted};
        memcpy(&word, &header, sizeof(word));
      }
      memcpy(bytes + at % memory.ring_size(), &word, sizeof(word));
    }
    memory.client().ring.write_position.store(end);
    clock_.Update();
    size_t turns = 0;
    while (target_->recorder().Drain(100, /*writers_gone=*/true) > 0)
      ASSERT_LE(++turns, 10'000u);
  }
  target_->recorder().UpdateDump();
  EXPECT_GT(target_->profile().quality.corrupt_records, 0u);
}

TEST_F(TargetTest, RecordsCutByTheEndOfTheProcessAreNotDamage) {
  RingHeader& ring = target_->recorder().memory().client().ring;
  ring.slot_count.store(2);  // threads
  writer_.Reserve(RecordType::kSample, 64);
  WriteSample(TestSample(0x10, 100), {KeyInOwnCode(4)});
  clock_.Update();
  while (target_->recorder().Drain(100, /*writers_gone=*/true) > 0) {
  }
  target_->recorder().UpdateDump();
  EXPECT_EQ(target_->profile().quality.samples, 1u);
  EXPECT_EQ(target_->profile().quality.cut_records, 1u);
  EXPECT_EQ(target_->profile().quality.corrupt_records, 0u);
}

TEST_F(TargetTest, MoreRecordsThanThreadsAreNotCutByTheEndOfTheProcess) {
  target_->recorder().memory().client().ring.slot_count.store(1);
  for (uint64_t i = 0; i < 3; ++i) {
    writer_.Reserve(RecordType::kSample, 64);
    WriteSample(TestSample(0x10 * (i + 1), 100), {KeyInOwnCode(4)});
  }
  clock_.Update();
  while (target_->recorder().Drain(100, /*writers_gone=*/true) > 0) {
  }
  target_->recorder().UpdateDump();
  EXPECT_EQ(target_->profile().quality.cut_records, 1u);
  EXPECT_EQ(target_->profile().quality.corrupt_records, 2u);
}

TEST(TargetCreateTest, AProcessThatDoesNotExistIsAnError) {
  SessionConfig config;
  config.ring_size_bytes = kMinRingSize;
  ModuleCache modules;
  const TscClock clock;
  EXPECT_FALSE(Target::Create({.pid = 0x7fffffff, .thread = 0x7fffffff, .process = -1},
                              config, &modules, &clock)
                   .ok());
}

// As when a process has ended and another one, here this, has got its number.
TEST(TargetCreateTest, AnotherProcessWithTheNumberIsNotLookedAt) {
  SessionConfig config;
  config.ring_size_bytes = kMinRingSize;
  ModuleCache modules;
  const TscClock clock;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0)
    _exit(0);
  const ScopedFd ended(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(ended.valid());
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const auto target =
      Target::Create({.pid = getpid(), .thread = getpid(), .process = ended.get()},
                     config, &modules, &clock);
  ASSERT_FALSE(target.ok());
  EXPECT_EQ(target.status().code(), StatusCode::kNotFound);  // of a child nobody is told
  EXPECT_EQ(target.status().message(),
            "process " + std::to_string(getpid()) + " has ended");
}

// The engine looks while the place is empty, and nobody says that other code comes there.
TEST_F(TargetTest, CodeThatComesToAnEmptyPlaceIsNotTakenForWhatWasThere) {
  void* place =
      mmap(nullptr, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  const uint64_t key = reinterpret_cast<uint64_t>(place) + 16;
  const auto map_file = [&] {
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    mmap(place, kPageSize, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
    close(file);
  };
  WriteSample(TestSample(0x10, 100), {key});
  DrainAndDump();
  SessionControl& control = target_->recorder().memory().engine().control;
  const uint32_t epoch = control.known_stacks_epoch.load();
  munmap(place, kPageSize);
  WriteModulesChanged();
  DrainAndDump();
  EXPECT_NE(control.known_stacks_epoch.load(), epoch);  // frames are sent anew
  map_file();
  WriteSample(TestSample(0x20, 30), {key});
  const HeapDump& dump = DrainAndDump();
  munmap(place, kPageSize);
  ASSERT_EQ(dump.callsites.size(), 2u);
  for (const auto& [callsite, totals] : dump.callsites) {
    const TargetProfile& profile = target_->profile();
    const Frame& frame = profile.frames[profile.callsites[callsite].frame];
    ASSERT_LT(frame.mapping, profile.mappings.size());
    EXPECT_EQ(totals.allocated.bytes,
              profile.mappings[frame.mapping].path.empty() ? 100 : 30);
  }
}

TEST_F(TargetTest, ModulesThatWereUnloadedTogetherAreLookedAtOnce) {
  DrainAndDump();
  const uint64_t before = target_->profile().quality.map_reparses;
  for (int i = 0; i < 50; ++i)
    WriteModulesChanged();
  DrainAndDump();
  EXPECT_EQ(target_->profile().quality.map_reparses, before + 1);
  EXPECT_EQ(target_->recorder().memory().engine().control.rules_epoch.load(), 50u);
}

TEST_F(TargetTest, NumbersThatNoProcessCanHaveAreDamagedRecords) {
  SampleRecord huge = TestSample(0x10, kMaxAllocation + 1);
  WriteSample(huge, {KeyInOwnCode(4)});
  huge.size = UINT64_MAX;
  WriteSample(huge, {KeyInOwnCode(4)});
  SampleRecord rare = TestSample(0x20, 1);
  rare.interval = kMaxInterval + 1;
  WriteSample(rare, {KeyInOwnCode(4)});
  const HeapDump& dump = DrainAndDump();
  EXPECT_TRUE(dump.callsites.empty());
  EXPECT_EQ(target_->profile().quality.corrupt_records, 3u);
}

// Property: whatever sizes, intervals, addresses and counters a target makes up, every
// figure is a number, no sum is negative where none can be, and counters stay exact.
TEST_F(TargetTest, MadeUpNumbersNeverMakeAFigureThatIsNone) {
  std::mt19937_64 random(20240607);
  const auto any = [&] { return random() >> random() % 64; };
  ClientBlock& client = target_->recorder().memory().client();
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 50; ++i) {
      SampleRecord record = TestSample(any() % 64, std::max<uint64_t>(1, any()));
      record.interval = (any() | 1) & kIntervalBits;
      record.function = any() & 0xff;
      record.tsc = any();
      WriteSample(record, {KeyInOwnCode(random() % 4)});
      WriteFree(RecordType::kFree, any() % 64, random() % 2 == 0);
    }
    client.ring.slot_count = static_cast<uint32_t>(any());
    client.slots[random() % 8].calls = any();
    client.slots[random() % 8].granted = any();
    client.slots[random() % 8].bytes_left = any();
    client.ring.lost_records = any();
    const HeapDump& dump = DrainAndDump();
    for (const auto& [callsite, totals] : dump.callsites) {
      for (const Estimate& estimate : {totals.allocated, totals.freed}) {
        ASSERT_TRUE(estimate.bytes >= 0 && estimate.bytes < 1e40);
        ASSERT_TRUE(estimate.count >= 0 && estimate.count < 1e40);
        ASSERT_TRUE(estimate.bytes_variance >= 0 && estimate.bytes_variance < 1e80);
        ASSERT_TRUE(estimate.count_variance >= 0 && estimate.count_variance < 1e80);
      }
    }
    ASSERT_TRUE(dump.peak_total.bytes >= 0 && dump.peak_total.bytes < 1e40);
    ASSERT_LE(dump.peak_ns, dump.end_ns);
    ASSERT_LE(dump.exact_alloc_bytes, uint64_t{1} << 53);
    ASSERT_LE(dump.exact_alloc_calls, uint64_t{1} << 53);
    ASSERT_LE(target_->profile().quality.lost_records, uint64_t{1} << 53);
  }
}

TEST_F(TargetTest, AThreadBetweenTwoOfItsWritesCountsNothingTwice) {
  ClientBlock& client = target_->recorder().memory().client();
  client.ring.slot_count = 2;
  client.slots[0].granted = 5000;
  client.slots[0].bytes_left = 1000;
  client.slots[1].granted = 100;  // not yet raised by the chunk that bytes_left has
  client.slots[1].bytes_left = 4096;
  EXPECT_EQ(DrainAndDump().exact_alloc_bytes, 4000u);
}

}  // namespace
}  // namespace heapprofd
