#include "record/dump_spool.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace heapprofd {
namespace {

HeapDump Sample(double bytes) {
  HeapDump dump;
  dump.heap_name = "libc.malloc";
  dump.sampling_interval = 8;
  dump.original_sampling_interval = 4;
  dump.start_ns = 1;
  dump.end_ns = 2;
  dump.peak_ns = 3;
  dump.exact_alloc_calls = 5;
  dump.exact_alloc_bytes = 6;
  dump.peak_total = {.bytes = bytes, .low = bytes - 1, .high = bytes + 1};
  dump.certain_live = 5;
  dump.possible_live = 500;
  dump.callsites[7].allocated.bytes = bytes;
  dump.callsites[9].freed.count_variance = 11;
  dump.peak[7].count = 12;
  return dump;
}

TEST(DumpSpoolTest, DumpsComeBackInAnyOrder) {
  DumpSpool spool(testing::TempDir());
  std::vector<uint64_t> positions;
  for (int i = 0; i < 3; ++i) {
    const Result<uint64_t> position = spool.Append(Sample(100.0 * i));
    ASSERT_TRUE(position.ok()) << position.status().message();
    positions.push_back(position.value());
  }
  for (int i = 2; i >= 0; --i) {
    const Result<HeapDump> dump = spool.Read(positions[static_cast<size_t>(i)]);
    ASSERT_TRUE(dump.ok());
    EXPECT_EQ(dump.value().heap_name, "libc.malloc");
    EXPECT_EQ(dump.value().callsites.at(7).allocated.bytes, 100.0 * i);
    EXPECT_EQ(dump.value().callsites.at(9).freed.count_variance, 11);
    EXPECT_EQ(dump.value().peak.at(7).count, 12);
    EXPECT_EQ(dump.value().peak_total.bytes, 100.0 * i);
    EXPECT_EQ(dump.value().peak_total.low, 100.0 * i - 1);
    EXPECT_EQ(dump.value().peak_total.high, 100.0 * i + 1);
    EXPECT_EQ(dump.value().certain_live, 5);
    EXPECT_EQ(dump.value().possible_live, 500);
    EXPECT_EQ(dump.value().original_sampling_interval, 4u);
    EXPECT_EQ(dump.value().exact_alloc_bytes, 6u);
  }
}

TEST(DumpSpoolTest, WhatTheSystemDoesNotAllowIsSaid) {
  DumpSpool nowhere("/nonexistent");
  EXPECT_NE(nowhere.Append(Sample(1)).status().message().find(
                "cannot create a temporary file in /nonexistent: No such file"),
            std::string::npos);
  DumpSpool spool(testing::TempDir());
  ASSERT_TRUE(spool.Append(Sample(1)).ok());
  EXPECT_EQ(spool.Read(1 << 30).status().message(),
            "cannot read a dump back: Input/output error");
}

TEST(DumpSpoolTest, NothingStaysInTheDirectory) {
  const std::string directory = testing::TempDir() + "/spool";
  std::filesystem::create_directory(directory);
  DumpSpool spool(directory);
  ASSERT_TRUE(spool.Append(Sample(1)).ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove(directory);
}

TEST(DumpSpoolTest, AMissingDirectoryIsAnError) {
  DumpSpool spool("/nonexistent/directory");
  EXPECT_FALSE(spool.Append(Sample(1)).ok());
}

}  // namespace
}  // namespace heapprofd
