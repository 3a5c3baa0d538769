// What is restored of a file is the same in both forms in which its stacks may be read.
#include "cli/inspect/restored_profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cli/inspect/opened_file.h"
#include "cli/results/test_profile.h"
#include "export/gzip.h"
#include "export/pprof.h"
#include "query/allocators.h"
#include "tables/last_dumps.h"

namespace heapprofd {
namespace {

using BytesByStack = std::map<std::string, double>;

BytesByStack LiveBytes(const RestoredProfile& restored) {
  const TargetProfile& profile = restored.profile();
  BytesByStack bytes;
  for (const HeapDump& heap : profile.heaps) {
    for (const auto& [callsite, totals] : heap.callsites) {
      std::string stack;
      for (CallsiteId at = callsite; at != kNoId; at = profile.callsites[at].parent)
        stack += std::string(
                     profile.frames[profile.callsites[at].frame].lines.at(0).function) +
                 ";";
      bytes[stack] += totals.live().bytes;
    }
  }
  return bytes;
}

BytesByStack RestoredOf(const OpenedFile& file) {
  const std::vector<bool> is_allocator = AllocatorFrames(file.trace());
  HeapSums sums(file.trace());
  RestoredProfile restored(file.trace(), is_allocator, sums, /*upid=*/0);
  for (const uint32_t dump : LastDumps(file.trace()))
    restored.AddHeap(dump);
  return LiveBytes(restored);
}

TEST(RestoredProfileTest, WholeStacksAndCallsitesAreTheSameProfile) {
  char directory[] = "/tmp/hpd_restored_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/profile.pb.gz";
  std::mt19937 random(42);
  TestProfile made;
  BytesByStack expected;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::string> names(1 + random() % 12);
    std::string stack;
    for (std::string& name : names) {
      name = "f" + std::to_string(random() % 3);
      stack += name + ";";
    }
    if (expected.contains(stack))
      continue;
    const auto bytes = static_cast<double>(1 + random() % 1000);
    made.Add(names, bytes);
    expected[stack] = bytes;
  }
  std::ofstream(path) << Gzip(EncodePprof(made.profile(), made.dump(), {}));

  auto opened = OpenFiles({path}, "restored_profile_test");
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  OpenedFile& file = *opened.value();
  EXPECT_GT(file.trace().stacks.row_count(), 0u);
  EXPECT_EQ(RestoredOf(file), expected);
  ASSERT_TRUE(file.database->UseCallsites().ok());
  EXPECT_EQ(file.trace().stacks.row_count(), 0u);
  EXPECT_EQ(RestoredOf(file), expected);
  std::filesystem::remove_all(directory);
}

TEST(RestoredProfileTest, AProcessKnowsItsParent) {
  ImportedTrace trace;
  trace.processes.resize(2);
  trace.processes[0].pid = 7;
  trace.processes[1].pid = 8;
  trace.processes[1].parent_upid = 0;
  HeapSums sums(trace);
  const std::vector<bool> is_allocator;
  const RestoredProfile parent(trace, is_allocator, sums, /*upid=*/0);
  const RestoredProfile child(trace, is_allocator, sums, /*upid=*/1);
  EXPECT_EQ(parent.profile().process.parent_pid, 0);
  EXPECT_EQ(child.profile().process.pid, 8);
  EXPECT_EQ(child.profile().process.parent_pid, 7);
}

}  // namespace
}  // namespace heapprofd
