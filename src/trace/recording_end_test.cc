#include "trace/recording_end.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/limits.h"

namespace heapprofd {
namespace {

ProcessEnd SomeProcess() {
  ProcessEnd end;
  end.pid = 42;
  end.start_ns = 7'000'000'007;
  end.executable = "/usr/bin/x";
  end.hooks_malloc = false;
  end.has_own_malloc = true;
  end.has_heaps = false;
  end.unrecorded_heaps = {"pool", "arena"};
  end.late_files = {"/mnt/\xff"};
  end.rss_kib = 5;
  end.anonymous_kib = 4;
  end.swap_kib = 3;
  end.rss_limit_kib = 2;
  end.requested = 1.25;
  end.history = {0, 2.5, 1e9};
  end.unnamed = {{.path = "/usr/lib/liba.so",
                  .build_id = std::string("\0\1", 2),
                  .unnamed_frames = 9,
                  .reason = NoSymbolsReason::kNotFound,
                  .error = "it is gone",
                  .starts = {0x1000, 0x7fff00000000},
                  .is_unmapped = false},
                 {.is_unmapped = true}};
  return end;
}

TEST(RecordingEnd, ReadsWhatWasWritten) {
  const ProcessEnd end = SomeProcess();
  const ProcessEnd read = ReadProcessEnd(ProcessEndMessage(end));
  EXPECT_EQ(read.pid, end.pid);
  EXPECT_EQ(read.start_ns, end.start_ns);
  EXPECT_EQ(read.executable, end.executable);
  EXPECT_FALSE(read.hooks_malloc);
  EXPECT_TRUE(read.has_own_malloc);
  EXPECT_FALSE(read.has_heaps);
  EXPECT_EQ(read.unrecorded_heaps, end.unrecorded_heaps);
  EXPECT_EQ(read.late_files, end.late_files);
  EXPECT_EQ(read.rss_kib, end.rss_kib);
  EXPECT_EQ(read.anonymous_kib, end.anonymous_kib);
  EXPECT_EQ(read.swap_kib, end.swap_kib);
  EXPECT_EQ(read.rss_limit_kib, end.rss_limit_kib);
  EXPECT_EQ(read.requested, end.requested);
  EXPECT_EQ(read.history, end.history);
  ASSERT_EQ(read.unnamed.size(), 2u);
  EXPECT_EQ(read.unnamed[0].path, end.unnamed[0].path);
  EXPECT_EQ(read.unnamed[0].build_id, end.unnamed[0].build_id);
  EXPECT_EQ(read.unnamed[0].unnamed_frames, 9u);
  EXPECT_EQ(read.unnamed[0].reason, NoSymbolsReason::kNotFound);
  EXPECT_EQ(read.unnamed[0].error, "it is gone");
  EXPECT_EQ(read.unnamed[0].starts, end.unnamed[0].starts);
  EXPECT_FALSE(read.unnamed[0].is_unmapped);
  EXPECT_TRUE(read.unnamed[1].is_unmapped);

  RecordingEnd recording;
  recording.seconds = 1.5;
  recording.program_pid = 42;
  recording.unrecorded = {
      {.reason = UnrecordedReason::kStatic, .count = 3, .names = {"a", "b"}},
      {.reason = UnrecordedReason::kNotLoaded, .count = 1, .names = {"c"}}};
  const RecordingEnd whole = ReadRecordingEnd(RecordingEndMessage(recording));
  EXPECT_EQ(whole.seconds, 1.5);
  EXPECT_EQ(whole.program_pid, 42);
  ASSERT_EQ(whole.unrecorded.size(), 2u);
  EXPECT_EQ(whole.unrecorded[0].reason, UnrecordedReason::kStatic);
  EXPECT_EQ(whole.unrecorded[0].count, 3u);
  EXPECT_EQ(whole.unrecorded[0].names, recording.unrecorded[0].names);
  EXPECT_EQ(whole.unrecorded[1].reason, UnrecordedReason::kNotLoaded);
}

TEST(RecordingEnd, ProcessesThatSayNothingSpecialHaveMalloc) {
  const ProcessEnd read = ReadProcessEnd(ProcessEndMessage(ProcessEnd()));
  EXPECT_TRUE(read.hooks_malloc);
  EXPECT_TRUE(read.has_heaps);
}

TEST(RecordingEnd, NumbersOfHostileFilesAreWithinBounds) {
  using Field = field::ProcessEnd;
  std::string message;
  protozero::pbf_writer writer(message);
  writer.add_double(Field::kHistory, std::numeric_limits<double>::quiet_NaN());
  writer.add_double(Field::kHistory, std::numeric_limits<double>::infinity());
  writer.add_double(Field::kHistory, -1);
  writer.add_double(Field::kHistory, 1e300);
  {
    protozero::pbf_writer code(writer, Field::kUnnamed);
    code.add_enum(Field::UnnamedModule::kReason, 200);
  }
  for (int i = 0; i < 10'000; ++i)
    writer.add_bytes(Field::kLateFiles, "");
  const ProcessEnd read = ReadProcessEnd(message);
  EXPECT_EQ(read.history, (std::vector<double>{0, 0, 0, 1e18}));
  EXPECT_LE(read.unnamed.at(0).reason, NoSymbolsReason::kCancelled);
  EXPECT_LT(read.late_files.size(), 10'000u);
}

TEST(RecordingEnd, PacketsStaySmall) {
  ProcessEnd end = SomeProcess();
  end.unnamed.assign(1000, {.path = std::string(10'000, 'p'),
                            .build_id = "",
                            .unnamed_frames = 1,
                            .error = std::string(100'000, 'e')});
  end.unrecorded_heaps.assign(10'000, std::string(64, 'h'));
  EXPECT_LT(ProcessEndMessage(end).size(), 500'000u);
  RecordingEnd recording;
  recording.unrecorded.assign(
      10, {.count = 1, .names = std::vector<std::string>(5, std::string(100'000, 'n'))});
  EXPECT_LT(RecordingEndMessage(recording).size(), 500'000u);
}

}  // namespace
}  // namespace heapprofd
