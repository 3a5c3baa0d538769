#include "unwind/proc_maps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace heapprofd {
namespace {

TEST(ParseMapsTest, ALineOfTheKernelBecomesAnEntry) {
  const std::vector<MapEntry> entries = ParseMaps(
      "7f0123400000-7f0123500000 r-xp 0001f000 fe:02 1234567      "
      "              /usr/lib/libx.so.1\n");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0], (MapEntry{.start = 0x7f0123400000,
                                  .end = 0x7f0123500000,
                                  .offset = 0x1f000,
                                  .readable = true,
                                  .writable = false,
                                  .executable = true,
                                  .is_deleted = false,
                                  .device = 0xfe00002,
                                  .inode = 1234567,
                                  .path = "/usr/lib/libx.so.1"}));
}

TEST(ParseMapsTest, PermissionsAreToldApart) {
  const std::vector<MapEntry> entries = ParseMaps(
      "1000-2000 rw-p 00000000 00:00 0 \n"
      "2000-3000 ---p 00000000 00:00 0 \n"
      "3000-4000 rwxs 00000000 00:00 0 \n");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_TRUE(entries[0].readable && entries[0].writable && !entries[0].executable);
  EXPECT_FALSE(entries[1].readable || entries[1].writable || entries[1].executable);
  EXPECT_TRUE(entries[2].readable && entries[2].writable && entries[2].executable);
}

TEST(ParseMapsTest, PathsAreTakenAsTheyStand) {
  const struct {
    const char* tail;
    const char* path;
    bool is_deleted;
  } kCases[] = {
      {"08:01 5 /tmp/with two  spaces", "/tmp/with two  spaces", false},
      {"08:01 5 /tmp/gone (deleted)", "/tmp/gone", true},
      {"08:01 5 /tmp/x (deleted) (deleted)", "/tmp/x (deleted)", true},
      {"00:00 0 [vdso]", "[vdso]", false},
      {"00:00 0 [heap] (deleted)", "[heap] (deleted)", false},
      {"00:00 0", "", false},
      {"00:00 0 ", "", false},
      {"08:01 5 /tmp/line\\012break", "/tmp/line\\012break", false},
      {"08:01 5 /memfd:x (deleted)", "/memfd:x", true},
  };

  for (const auto& test : kCases) {
    const std::vector<MapEntry> entries =
        ParseMaps(std::string("1000-2000 r-xp 00000000 ") + test.tail + "\n");
    ASSERT_EQ(entries.size(), 1u) << test.tail;
    EXPECT_EQ(entries[0].path, test.path);
    EXPECT_EQ(entries[0].is_deleted, test.is_deleted) << test.tail;
  }
}

TEST(ParseMapsTest, TheLastLineMayLackItsEnd) {
  EXPECT_EQ(ParseMaps("1000-2000 r-xp 0 00:00 0\n2000-3000 r-xp 0 00:00 0").size(), 2u);
}

TEST(ParseMapsTest, OtherLinesAreSkippedAndTheRestIsRead) {
  for (const char* bad :
       {"", "x", "1000", "1000-", "1000-2000", "1000-2000 ", "1000-2000 r-x",
        "1000-2000 r-xp", "1000-2000 r-xp ", "1000-2000 r-xp zz 00:00 0",
        "1000-2000 r-xp 0 0000 0", "1000-2000 r-xp 0 00:00 ", "1000-2000 r-xp 0 00:00 x",
        "2000-1000 r-xp 0 00:00 0", "1000-1000 r-xp 0 00:00 0",
        "-1000-2000 r-xp 0 00:00 0", "11111111111111111-2000 r-xp 0 00:00 0"}) {
    const std::vector<MapEntry> entries =
        ParseMaps(std::string(bad) + "\n5000-6000 r-xp 0 00:00 0 /a\n");
    ASSERT_EQ(entries.size(), 1u) << bad;
    EXPECT_EQ(entries[0].start, 0x5000u);
  }
}

TEST(ParseMapsTest, TheNumberOfEntriesIsBounded) {
  std::string text;
  for (size_t i = 0; i < kMaxMapEntries + 100; ++i)
    text += "1000-2000 r-xp 0 00:00 0\n";
  EXPECT_EQ(ParseMaps(text).size(), kMaxMapEntries);
}

TEST(ParseMapsTest, EveryLineOfThisProcessIsRead) {
  std::ifstream in("/proc/self/maps");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::vector<MapEntry> entries = ParseMaps(text);
  std::istringstream lines(text);
  std::string line;
  size_t count = 0;
  bool has_stack = false;
  while (std::getline(lines, line)) {
    ASSERT_LT(count, entries.size());
    const MapEntry& entry = entries[count++];
    std::ostringstream range;
    range << std::hex << entry.start << '-' << entry.end << ' ';
    EXPECT_NE(line.find(range.str()), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with(entry.path)) << line;
    has_stack |= entry.path == "[stack]" && entry.writable;
  }
  EXPECT_EQ(count, entries.size());
  EXPECT_TRUE(has_stack);
}

}  // namespace
}  // namespace heapprofd
