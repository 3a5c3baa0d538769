#include "cli/record/resident_table.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr uint64_t kMib = uint64_t{1} << 20;

TEST(ResidentTableTest, WhatIsKnownHasARow) {
  MachineFigures figures{
      .process = "process 12 (java)",
      .resident = {.all = 200 * kMib,
                   .heap = 100 * kMib,
                   .code = 10 * kMib,
                   .stacks = 2 * kMib,
                   .files = 30 * kMib,
                   .rest = 58 * kMib,
                   .stack_count = 22,
                   .thread_count = 23},
      .memory = {.heap = UsedMemory{80 * kMib, 256 * kMib},
                 .metaspace = UsedMemory{9 * kMib, 10 * kMib},
                 .code = UsedMemory{5 * kMib, 10 * kMib},
                 .heap_ranges = {{1, 2}},
                 .code_ranges = {{3, 4}}},
      .malloc = MallocEstimate{20.0 * kMib, 18.0 * kMib, 22.0 * kMib},
      .owners = {{"a.Cache", 5, 5 * kMib}, {"b.\x1b[1mPool", 1, 1 * kMib}}};
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

TEST(ResidentTableTest, WhatIsNotKnownHasNone) {
  EXPECT_EQ(FormatResidentTable({.process = "process 12 (java)",
                                 .resident = {.all = kMib, .rest = kMib}}),
            "  resident memory of process 12 (java): 1.00 MiB, of which\n"
            "         0 B  mapped files\n"
            "    1.00 MiB  the rest; known of it:\n");
}

}  // namespace
}  // namespace heapprofd
