#include "trace/profile_sequence.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "trace/fields.h"
#include "trace/test_profile.h"

namespace heapprofd {
namespace {

using SampleField = field::ProfilePacket::HeapSample;
using DumpField = field::ProfilePacket::ProcessHeapSamples;

class ProfileSequenceTest : public ::testing::Test {
 protected:
  Status Write(const TargetProfile& profile, uint64_t target_id, const DumpFlags& flags) {
    return sequence_.WriteHeaps(profile, profile.heaps, target_id, flags);
  }

  // Serialized.
  std::vector<std::string> Packets() const { return PacketsOf(file_.bytes()); }

  TraceFile file_ = TraceFile::InMemory();
  ProfileSequence sequence_{&file_};
};

TEST_F(ProfileSequenceTest, ItsStateBeginsOnceWithTheEmptyString) {
  ASSERT_TRUE(Write(ProfileWith(2), 0, {}).ok());
  ASSERT_TRUE(Write(ProfileWith(2), 1, {}).ok());
  std::set<uint32_t> ids;
  std::vector<size_t> clearing;
  const std::vector<std::string> packets = Packets();
  for (size_t i = 0; i < packets.size(); ++i) {
    protozero::pbf_reader reader(packets[i]);
    while (reader.next()) {
      if (reader.tag() == field::TracePacket::kTrustedPacketSequenceId) {
        ids.insert(reader.get_uint32());
        continue;
      }
      if (reader.tag() == field::TracePacket::kSequenceFlags)
        clearing.push_back(i);
      reader.skip();
    }
  }
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(clearing, std::vector<size_t>({0}));
  protozero::pbf_reader first(packets[0]);
  EXPECT_TRUE(first.next(field::TracePacket::kInternedData));
}

TEST_F(ProfileSequenceTest, ADumpEndsWithAPacketThatIsNotContinued) {
  ASSERT_TRUE(Write(ProfileWith(2), 0, {}).ok());
  const std::vector<std::string> packets = Packets();
  const auto is_continued = [](const std::string& packet) {
    protozero::pbf_reader reader(packet);
    EXPECT_TRUE(reader.next(field::TracePacket::kProfilePacket));
    protozero::pbf_reader profile(reader.get_message());
    return profile.next(field::ProfilePacket::kContinued) && profile.get_bool();
  };
  ASSERT_EQ(packets.size(), 4u);  // the empty string, the dump, its strings, the end
  EXPECT_TRUE(is_continued(packets[1]));
  EXPECT_FALSE(is_continued(packets[3]));
}

TEST_F(ProfileSequenceTest, AHundredThousandCallsitesStayInSmallPackets) {
  ASSERT_TRUE(Write(ProfileWith(100'000), 0, {}).ok());
  uint64_t next_index = 0;
  uint64_t bytes = 0;
  for (const std::string& packet : Packets()) {
    EXPECT_LT(packet.size(), 500'000u);
    protozero::pbf_reader reader(packet);
    while (reader.next(field::TracePacket::kProfilePacket)) {
      protozero::pbf_reader profile = reader.get_message();
      while (profile.next()) {
        if (profile.tag() == field::ProfilePacket::kIndex) {
          EXPECT_EQ(profile.get_uint64(), next_index++);
        } else if (profile.tag() == field::ProfilePacket::kProcessDumps) {
          protozero::pbf_reader dump = profile.get_message();
          while (dump.next(DumpField::kSamples)) {
            protozero::pbf_reader sample = dump.get_message();
            ASSERT_TRUE(sample.next(SampleField::kSelfAllocated));
            bytes += sample.get_uint64();
          }
        } else {
          profile.skip();
        }
      }
    }
  }
  EXPECT_GE(next_index, 5u);
  EXPECT_EQ(bytes, uint64_t{100'000} * 100'001 / 2);
}

TEST_F(ProfileSequenceTest, ATargetWithoutHeapsIsNamedNevertheless) {
  TargetProfile profile = ProfileWith(0);
  profile.heaps.clear();
  ASSERT_TRUE(Write(profile, 0, {}).ok());
  bool is_named = false;
  for (const std::string& packet : Packets()) {
    protozero::pbf_reader reader(packet);
    if (!reader.next(field::TracePacket::kProfilePacket))
      continue;
    protozero::pbf_reader dump(reader.get_message());
    if (!dump.next(field::ProfilePacket::kProcessDumps))
      continue;
    protozero::pbf_reader header(dump.get_message());
    is_named |= header.next(DumpField::kPid) && header.get_uint64() == 7;
  }
  EXPECT_TRUE(is_named);
}

TEST_F(ProfileSequenceTest, ASecondDumpWritesNoInternedObjectAgain) {
  TargetProfile profile = ProfileWith(1000);
  ASSERT_TRUE(Write(profile, 0, {}).ok());
  const size_t first = file_.size();
  profile.heaps[0].callsites[1].allocated.bytes += 50;
  ASSERT_TRUE(Write(profile, 0, {}).ok());
  EXPECT_LT(file_.size(), first * 3 / 2);
}

// Heap, start and end of all dumps.
struct Written {
  std::string heap;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;

  bool operator==(const Written&) const = default;
};

std::vector<Written> DumpsIn(const std::vector<std::string>& packets) {
  std::vector<Written> dumps;
  for (const std::string& packet : packets) {
    protozero::pbf_reader reader(packet);
    if (!reader.next(field::TracePacket::kProfilePacket))
      continue;
    protozero::pbf_reader profile(reader.get_message());
    if (!profile.next(field::ProfilePacket::kProcessDumps))
      continue;
    Written& dump = dumps.emplace_back();
    protozero::pbf_reader header(profile.get_message());
    while (header.next()) {
      if (header.tag() == DumpField::kHeapName)
        dump.heap = header.get_string();
      else if (header.tag() == DumpField::kStartTimestamp)
        dump.start_ns = header.get_uint64();
      else if (header.tag() == DumpField::kTimestamp)
        dump.end_ns = header.get_uint64();
      else
        header.skip();
    }
  }
  return dumps;
}

TEST_F(ProfileSequenceTest,
       NoTwoDumpsOfAProcessHaveOneTimeAndEachBeginsWhereTheLastEnded) {
  TargetProfile profile = ProfileWith(1);
  profile.heaps.push_back(profile.heaps[0]);
  profile.heaps[1].heap_name = "pool";
  for (const uint64_t now : {100u, 200u}) {
    for (HeapDump& dump : profile.heaps) {
      dump.start_ns = now - 100;
      dump.end_ns = now;
    }
    ASSERT_TRUE(Write(profile, 0, {}).ok());
  }
  profile.process.start_ns = 150;  // after an exec: the same pid
  ASSERT_TRUE(Write(profile, 1, {}).ok());
  profile.heaps.push_back(profile.heaps[0]);
  profile.heaps[2].heap_name = "late";
  ASSERT_TRUE(Write(profile, 1, {}).ok());
  EXPECT_EQ(DumpsIn(Packets()), (std::vector<Written>{{"libc.malloc", 0, 100},
                                                      {"pool", 0, 101},
                                                      {"libc.malloc", 100, 200},
                                                      {"pool", 101, 201},
                                                      {"libc.malloc", 150, 202},
                                                      {"pool", 150, 203},
                                                      {"libc.malloc", 202, 204},
                                                      {"pool", 203, 205},
                                                      {"late", 100, 206}}));
}

// Programs may ask for as many dumps at a time as they like, in any order.
TEST_F(ProfileSequenceTest, EveryDumpHasTheFirstTimeFromItsOwnOnThatNobodyHas) {
  constexpr int kDumps = 3000;
  constexpr uint64_t kTimes = 2 * kDumps;  // so that runs of taken times grow and meet
  std::mt19937_64 random(20260101);
  TargetProfile profile = ProfileWith(1);
  std::set<uint64_t> taken;
  std::vector<uint64_t> expected;
  for (int i = 0; i < kDumps; ++i) {
    uint64_t time = profile.heaps[0].end_ns = 1 + random() % kTimes;
    profile.heaps[0].heap_name = std::to_string(i);  // each begins with time 0
    ASSERT_TRUE(Write(profile, 0, {}).ok());
    while (!taken.insert(time).second)
      ++time;
    expected.push_back(time);
  }
  std::vector<uint64_t> times;
  for (const Written& dump : DumpsIn(Packets()))
    times.push_back(dump.end_ns);
  EXPECT_EQ(times, expected);
}

TEST_F(ProfileSequenceTest, TheIntervalOfADumpOfThePeakEndsAtThePeak) {
  TargetProfile profile = ProfileWith(1);
  HeapDump& dump = profile.heaps[0];
  const DumpFlags flags{.mode = DumpMode::kPeak};
  for (const auto& [now, peak] :
       {std::pair(100, 30), {200, 30}, {300, 250}, {400, 248}}) {
    dump.start_ns = static_cast<uint64_t>(now) - 100;
    dump.end_ns = static_cast<uint64_t>(now);
    dump.peak_ns = static_cast<uint64_t>(peak);
    ASSERT_TRUE(Write(profile, 0, flags).ok());
  }
  EXPECT_EQ(DumpsIn(Packets()), (std::vector<Written>{{"libc.malloc", 0, 30},
                                                      {"libc.malloc", 30, 31},
                                                      {"libc.malloc", 31, 250},
                                                      {"libc.malloc", 250, 251}}));
}

}  // namespace
}  // namespace heapprofd
