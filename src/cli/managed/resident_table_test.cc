#include "cli/managed/resident_table.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

TEST(ResidentTableTest, WhatIsKnownHasARow) {
  MachineFigures figures{
      .process = "process 12 (java)",
      .resident = {.all = 200 * kMebibyte,
                   .heap = 100 * kMebibyte,
                   .code = 10 * kMebibyte,
                   .stacks = 2 * kMebibyte,
                   .files = 30 * kMebibyte,
                   .rest = 58 * kMebibyte,
                   .stack_count = 22,
                   .thread_count = 23},
      .memory = {.heap = UsedMemory{80 * kMebibyte, 256 * kMebibyte},
                 .metaspace = UsedMemory{9 * kMebibyte, 10 * kMebibyte},
                 .code = UsedMemory{5 * kMebibyte, 10 * kMebibyte},
                 .heap_ranges = {{1, 2}},
                 .code_ranges = {{3, 4}}},
      .malloc = MallocEstimate{20.0 * kMebibyte, 18.0 * kMebibyte, 22.0 * kMebibyte},
      .owners = {{"a.Cache", {5, 5 * kMebibyte}}, {"b.\x1b[1mPool", {1, 1 * kMebibyte}}}};
  EXPECT_EQ(FormatResidentTable(figures),
            "  resident memory of process 12 (java): 200 MiB, of which\n"
            "     100 MiB  Java heap: 80.0 MiB used of 256 MiB committed\n"
            "    10.0 MiB  compiled code: 5.00 MiB used of 10.0 MiB committed\n"
            "    2.00 MiB  stacks of 22 of 23 threads\n"
            "    30.0 MiB  mapped files\n"
            "    58.0 MiB  the rest; known of it:\n"
            "        20.0 MiB  live in malloc, by the samples: 18.0 MiB to 22.0 MiB\n"
            "        10.0 MiB  classes (metaspace) committed, 9.00 MiB used\n"
            "        6.00 MiB  6 direct buffers, most of malloc; held by\n"
            "            5.00 MiB  a.Cache\n"
            "            1.00 MiB  b.?[1mPool\n");
}

// The rows of direct buffers.
std::string BufferRows(std::vector<BufferOwner> owners,
                       std::optional<UnsampledBuffers> unsampled) {
  const std::string text = FormatResidentTable({.process = "process 12 (java)",
                                                .owners = std::move(owners),
                                                .unsampled = unsampled});
  return text.substr(text.find("held by\n") + 8);
}

TEST(ResidentTableTest, StacksStandBelowTheirHolder) {
  EXPECT_EQ(BufferRows({{"a.Cache",
                         {15, 15 * kMebibyte},
                         {{{"os::malloc", "Unsafe_AllocateMemory0"}, {5, 5 * kMebibyte}},
                          {{"\x1b[1mmine"}, {4, 4 * kMebibyte}},
                          {{}, {3, 3 * kMebibyte}},
                          {{"x"}, {2, 2 * kMebibyte}},
                          {{"y"}, {1, 1 * kMebibyte}}}}},
                       {}),
            "            15.0 MiB  a.Cache\n"
            "                5.00 MiB  by os::malloc ← Unsafe_AllocateMemory0\n"
            "                4.00 MiB  by ?[1mmine\n"
            "                3.00 MiB  by [unknown]\n"
            "              and 2 other stacks\n");
}

TEST(ResidentTableTest, WhyBuffersHaveNoStackIsTold) {
  const BufferOwner owner{"a.Cache", {9, 9 * kMebibyte}};
  UnsampledBuffers unsampled{.sum = {2, kMebibyte},
                             .sampling = {.interval = 4096},
                             .expected = 1.1 * kMebibyte,
                             .variance = 1e9};
  const std::string begin =
      "            9.00 MiB  a.Cache\n"
      "            1.00 MiB  in 2 of them without a stack: ";
  EXPECT_EQ(BufferRows({owner}, unsampled),
            begin + "1 sample per 4.00 KiB misses about 1.10 MiB\n");
  unsampled.expected = 0.5 * kMebibyte;
  unsampled.sampling.unlisted_blocks = 12;
  EXPECT_EQ(
      BufferRows({owner}, unsampled),
      begin +
          "1 sample per 4.00 KiB misses about 512 KiB; the rest: allocated before or "
          "after the recording, not by malloc, or one of the 12 smallest samples, which "
          "are not listed\n");
  unsampled = {.sum = {2, kMebibyte}, .sampling = {.interval = 1}};
  EXPECT_EQ(BufferRows({owner}, unsampled),
            begin + "allocated before or after the recording, or not by malloc\n");
}

TEST(ResidentTableTest, LostRecordsAndMallocsAbsenceAreNamed) {
  const BufferOwner owner{"a.Cache", {9, 9 * kMebibyte}};
  UnsampledBuffers unsampled{.sum = {2, kMebibyte},
                             .sampling = {.interval = 1, .lacks_records = true}};
  EXPECT_NE(BufferRows({owner}, unsampled)
                .find("without a stack: allocated before or after the recording, not by "
                      "malloc, or among the records that are missing\n"),
            std::string::npos);
  unsampled.sampling = {};
  EXPECT_NE(
      BufferRows({owner}, unsampled)
          .find("without a stack: the trace has nothing of malloc in this process\n"),
      std::string::npos);
}

TEST(ResidentTableTest, WithoutASampleItIsSaidWhatIsNotSeen) {
  EXPECT_NE(FormatResidentTable({.malloc = MallocEstimate{0, 0, 0}})
                .find("         0 B  live in malloc of what the recording has seen: "
                      "nothing was sampled, and what was allocated before is not seen\n"),
            std::string::npos);
}

TEST(ResidentTableTest, WhatIsNotKnownHasNone) {
  EXPECT_EQ(FormatResidentTable({.process = "process 12 (java)",
                                 .resident = {.all = kMebibyte, .rest = kMebibyte}}),
            "  resident memory of process 12 (java): 1.00 MiB, of which\n"
            "         0 B  mapped files\n"
            "    1.00 MiB  the rest; known of it:\n");
}

}  // namespace
}  // namespace heapprofd
