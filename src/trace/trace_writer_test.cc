#include "trace/trace_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include <protozero/pbf_reader.hpp>

#include "base/test_limits.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

using SampleField = field::ProfilePacket::HeapSample;
using DumpField = field::ProfilePacket::ProcessHeapSamples;

class TraceWriterTest : public ::testing::Test {
 protected:
  TraceWriterTest() {
    std::string pattern = "/tmp/trace_writer_test_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }

  ~TraceWriterTest() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/raw-trace"; }

  TraceWriter Create() {
    Result<TraceFile> file = TraceFile::Create(path());
    EXPECT_TRUE(file.ok());
    return TraceWriter(std::move(file).value());
  }

  // Serialized packets of the file.
  std::vector<std::string> Packets() const {
    std::ifstream file(path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> packets;
    for (protozero::pbf_reader reader(bytes); reader.next(field::Trace::kPacket);)
      packets.push_back(reader.get_string());
    return packets;
  }

  std::string directory_;
};

// One heap with `count` callsites of depth two; callsite i has i + 1 bytes allocated.
TargetProfile ProfileWith(uint32_t count) {
  TargetProfile profile;
  profile.process.pid = 7;
  Mapping mapping;
  mapping.path = "/usr/lib/lib.so";
  mapping.build_id = "0123456789";
  profile.mappings.push_back(mapping);
  profile.frames.push_back(Frame{.mapping = 0, .rel_pc = 1, .lines = {}});
  profile.callsites.push_back(Callsite{.parent = kNoId, .frame = 0});
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.sampling_interval = dump.original_sampling_interval = 4096;
  for (uint32_t i = 0; i < count; ++i) {
    profile.frames.push_back(Frame{.mapping = 0, .rel_pc = i + 2, .lines = {}});
    profile.callsites.push_back(Callsite{.parent = 0, .frame = i + 1});
    dump.callsites[i + 1].allocated = {.bytes = i + 1.0, .count = 1};
  }
  profile.heaps.push_back(std::move(dump));
  return profile;
}

TEST_F(TraceWriterTest, AHundredThousandCallsitesStayInSmallPackets) {
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader("").ok());
  ASSERT_TRUE(writer.WriteDump(ProfileWith(100'000), 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
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

TEST_F(TraceWriterTest, EndlessNamesStayInSmallPackets) {
  TargetProfile profile = ProfileWith(3);
  profile.mappings[0].path = "/" + std::string(size_t{1} << 20, 'x');
  for (Frame& frame : profile.frames)
    frame.lines.assign(
        20,
        {std::string(size_t{1} << 20, 'f'), {}, std::string(size_t{1} << 20, '/'), 1});
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteHeader({}).ok());
  ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
  ASSERT_TRUE(writer.WriteModuleSymbols(profile, NamedModules::kWithBuildId).ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_GT(Packets().size(), 5u);
  for (const std::string& packet : Packets())
    EXPECT_LT(packet.size(), 500'000u);
}

TEST_F(TraceWriterTest, ATargetWithoutHeapsIsNamedNevertheless) {
  TargetProfile profile = ProfileWith(0);
  profile.heaps.clear();
  TraceWriter writer = Create();
  ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
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

TEST_F(TraceWriterTest, ASecondDumpWritesNoInternedObjectAgain) {
  TraceWriter writer = Create();
  TargetProfile profile = ProfileWith(1000);
  ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const size_t first = std::filesystem::file_size(path());
  profile.heaps[0].callsites[1].allocated.bytes += 50;
  ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_LT(std::filesystem::file_size(path()), first * 3 / 2);
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

TEST_F(TraceWriterTest, NoTwoDumpsOfAProcessHaveOneTimeAndEachBeginsWhereTheLastEnded) {
  TraceWriter writer = Create();
  TargetProfile profile = ProfileWith(1);
  profile.heaps.push_back(profile.heaps[0]);
  profile.heaps[1].heap_name = "pool";
  for (const uint64_t now : {100u, 200u}) {
    for (HeapDump& dump : profile.heaps) {
      dump.start_ns = now - 100;
      dump.end_ns = now;
    }
    ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
  }
  profile.process.start_ns = 150;  // after an exec: the same pid
  ASSERT_TRUE(writer.WriteDump(profile, 1, {}).ok());
  profile.heaps.push_back(profile.heaps[0]);
  profile.heaps[2].heap_name = "late";
  ASSERT_TRUE(writer.WriteDump(profile, 1, {}).ok());
  ASSERT_TRUE(writer.Finish().ok());
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
TEST_F(TraceWriterTest, EveryDumpHasTheFirstTimeFromItsOwnOnThatNobodyHas) {
  constexpr int kDumps = 3000;
  constexpr uint64_t kTimes = 2 * kDumps;  // so that runs of taken times grow and meet
  std::mt19937_64 random(20260101);
  TraceWriter writer = Create();
  TargetProfile profile = ProfileWith(1);
  std::set<uint64_t> taken;
  std::vector<uint64_t> expected;
  for (int i = 0; i < kDumps; ++i) {
    uint64_t time = profile.heaps[0].end_ns = 1 + random() % kTimes;
    profile.heaps[0].heap_name = std::to_string(i);  // each begins with time 0
    ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
    while (!taken.insert(time).second)
      ++time;
    expected.push_back(time);
  }
  ASSERT_TRUE(writer.Finish().ok());
  std::vector<uint64_t> times;
  for (const Written& dump : DumpsIn(Packets()))
    times.push_back(dump.end_ns);
  EXPECT_EQ(times, expected);
}

TEST_F(TraceWriterTest, TheIntervalOfADumpOfThePeakEndsAtThePeak) {
  TraceWriter writer = Create();
  TargetProfile profile = ProfileWith(1);
  HeapDump& dump = profile.heaps[0];
  const DumpFlags flags{.mode = DumpMode::kPeak};
  for (const auto& [now, peak] :
       {std::pair(100, 30), {200, 30}, {300, 250}, {400, 248}}) {
    dump.start_ns = static_cast<uint64_t>(now) - 100;
    dump.end_ns = static_cast<uint64_t>(now);
    dump.peak_ns = static_cast<uint64_t>(peak);
    ASSERT_TRUE(writer.WriteDump(profile, 0, flags).ok());
  }
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_EQ(DumpsIn(Packets()), (std::vector<Written>{{"libc.malloc", 0, 30},
                                                      {"libc.malloc", 30, 31},
                                                      {"libc.malloc", 31, 250},
                                                      {"libc.malloc", 250, 251}}));
}

TEST_F(TraceWriterTest, ATraceInMemoryHasTheSameBytes) {
  const TargetProfile profile = ProfileWith(40);
  const auto write = [&](TraceWriter& writer) {
    ASSERT_TRUE(writer.WriteDump(profile, 0, {}).ok());
    ASSERT_TRUE(writer.Finish().ok());
  };
  TraceWriter on_disk = Create();
  write(on_disk);
  TraceWriter in_memory(TraceFile::InMemory());
  write(in_memory);
  EXPECT_FALSE(on_disk.file().is_in_memory());
  ASSERT_TRUE(in_memory.file().is_in_memory());
  EXPECT_EQ(in_memory.file().bytes().size(), std::filesystem::file_size(path()));
}

TEST_F(TraceWriterTest, AnExistingFileIsNotOverwritten) {
  std::ofstream(path()) << "mine";
  const Result<TraceFile> file = TraceFile::Create(path());
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("cannot create " + path()), std::string::npos);
}

TEST_F(TraceWriterTest, ItIsReadByWhateverNameItHasAndErrorsNameItsOwn) {
  Result<TraceFile> file = TraceFile::Create(path());
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(path());
  EXPECT_TRUE(file.value().OpenToRead().ok());
  if (!kMayRunOutOfDescriptors)
    GTEST_SKIP();
  const ScopedLimit none(RLIMIT_NOFILE, 0);
  EXPECT_EQ(file.value().OpenToRead().status().message(),
            "cannot open trace " + path() + ": Too many open files; raise ulimit -n");
}

TEST_F(TraceWriterTest, ALinkInPlaceOfTheFileIsNotFollowed) {
  std::filesystem::create_symlink("/dev/full", path());
  EXPECT_FALSE(TraceFile::Create(path()).ok());
}

}  // namespace
}  // namespace heapprofd
