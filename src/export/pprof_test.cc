#include "export/pprof.h"

#include <gtest/gtest.h>
#include <regex.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <protozero/pbf_reader.hpp>

#include "export/gzip.h"
#include "export/view.h"

namespace heapprofd {
namespace {

TargetProfile SmallProfile() {
  TargetProfile profile;
  Mapping mapping;
  mapping.start = 0x10000;
  mapping.end = 0x20000;
  mapping.exact_offset = 0x1000;
  mapping.load_bias = 0x400;
  mapping.path = "/bin/program";
  profile.mappings.push_back(mapping);
  Frame main;
  main.mapping = 0;
  main.rel_pc = 0x1450;
  main.lines = {
      {.function = "inlined()", .system_name = "_Z7inlinedv", .file = "a.cc", .line = 3},
      {.function = "main", .system_name = "main", .file = "a.cc", .line = 9}};
  profile.frames = {main, Frame{.mapping = kNoId, .rel_pc = 0x42, .lines = {}}};
  profile.callsites = {{.parent = kNoId, .frame = 0}, {.parent = 0, .frame = 1}};
  HeapDump dump;
  dump.sampling_interval = 4096;
  dump.callsites[1].allocated = {.bytes = 1000.4, .count = 9.6};
  dump.callsites[1].freed = {.bytes = 400, .count = 4};
  profile.heaps.push_back(dump);
  return profile;
}

// Values of all occurrences of a field of the profile.
std::vector<std::string> Messages(const std::string& bytes, uint32_t field) {
  std::vector<std::string> messages;
  for (protozero::pbf_reader reader(bytes); reader.next(field);)
    messages.push_back(reader.get_string());
  return messages;
}

uint64_t Number(const std::string& message, uint32_t field) {
  protozero::pbf_reader reader(message);
  return reader.next(field) ? reader.get_uint64() : 0;
}

TEST(PprofTest, ValuesAreRoundedAndInTheOrderOfTheSampleTypes) {
  const TargetProfile profile = SmallProfile();
  const std::string bytes = EncodePprof(profile, profile.heaps[0], {});
  const std::vector<std::string> samples = Messages(bytes, 2);
  ASSERT_EQ(samples.size(), 1u);
  protozero::pbf_reader sample(samples[0]);
  ASSERT_TRUE(sample.next(1));
  const auto locations = sample.get_packed_uint64();
  EXPECT_EQ(std::vector<uint64_t>(locations.begin(), locations.end()),
            (std::vector<uint64_t>{2, 1}));
  ASSERT_TRUE(sample.next(2));
  const auto values = sample.get_packed_int64();
  EXPECT_EQ(std::vector<int64_t>(values.begin(), values.end()),
            (std::vector<int64_t>{10, 1000, 6, 600}));
}

// As a trace has it, with what was allocated and what was freed.
TEST(PprofTest, LiveIsTheDifferenceOfWhatWasRounded) {
  CallsiteTotals totals;
  totals.allocated = {.bytes = 10.5, .count = 4.5};
  totals.freed = {.bytes = 3.4, .count = 1.4};
  EXPECT_EQ(ValueOf(totals, View::kSpace), 8);    // 11 - 3, not 7.1
  EXPECT_EQ(ValueOf(totals, View::kObjects), 4);  // 5 - 1, not 3.1
  totals.freed = {.bytes = 11.6, .count = 9};
  EXPECT_EQ(ValueOf(totals, View::kSpace), 0);
}

TEST(PprofTest, FunctionsThatAllocateAreToBeDropped) {
  const TargetProfile profile = SmallProfile();
  const std::string bytes = EncodePprof(profile, profile.heaps[0], {});
  const std::string pattern = "^(" + Messages(bytes, 6).at(Number(bytes, 7)) + ")$";
  regex_t dropped{};
  ASSERT_EQ(regcomp(&dropped, pattern.c_str(), REG_EXTENDED | REG_NOSUB), 0);
  const auto is_dropped = [&dropped](const char* name) {
    return regexec(&dropped, name, 0, nullptr, 0) == 0;
  };
  for (const char* name : {"malloc", "calloc", "operator new", "operator new[]",
                           "xallocx", "AHeapProfile_reportSample"})
    EXPECT_TRUE(is_dropped(name)) << name;
  EXPECT_FALSE(is_dropped("main"));
  regfree(&dropped);
}

TEST(PprofTest, NamesThatAreNotUtf8AndEndlessValuesStayReadable) {
  TargetProfile profile = SmallProfile();
  profile.frames[0].lines[0].function = "caf\xe9";
  profile.heaps[0].callsites[1].allocated.bytes = 1e300;
  const std::string bytes = EncodePprof(profile, profile.heaps[0], {});
  const std::vector<std::string> strings = Messages(bytes, 6);
  EXPECT_NE(std::ranges::find(strings, "caf\xef\xbf\xbd"), strings.end());
  const std::vector<std::string> samples = Messages(bytes, 2);
  protozero::pbf_reader sample(samples.at(0));
  ASSERT_TRUE(sample.next(2));
  const auto values = sample.get_packed_int64();
  EXPECT_EQ(*std::next(values.begin()), 9'200'000'000'000'000'000);
}

TEST(PprofTest, EveryLocationHasAMappingAndItsAbsoluteAddress) {
  const TargetProfile profile = SmallProfile();
  const std::string bytes = EncodePprof(profile, profile.heaps[0], {});
  const std::vector<std::string> locations = Messages(bytes, 4);
  ASSERT_EQ(locations.size(), 2u);
  EXPECT_EQ(Number(locations[0], 2), 2u);  // the frame without a mapping has one, too
  EXPECT_EQ(Number(locations[1], 2), 1u);
  EXPECT_EQ(Number(locations[1], 3), 0x10050u);
  EXPECT_EQ(Messages(bytes, 3).size(), 2u);
}

TEST(PprofTest, TheProgramIsTheFirstMapping) {
  TargetProfile profile = SmallProfile();
  Mapping other;
  other.path = "/bin/other";
  profile.mappings.push_back(other);
  profile.process.executable = other.path;
  const std::string bytes = EncodePprof(profile, profile.heaps[0], {});
  EXPECT_EQ(Number(Messages(bytes, 3)[0], 1), 2u);
}

TEST(PprofTest, InlinedFunctionsComeInnermostFirst) {
  const TargetProfile profile = SmallProfile();
  const std::string bytes = EncodePprof(profile, profile.heaps[0], {});
  const std::vector<std::string> strings = Messages(bytes, 6);
  const std::vector<std::string> functions = Messages(bytes, 5);
  const std::vector<std::string> lines = Messages(Messages(bytes, 4)[1], 4);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(strings[Number(functions[Number(lines[0], 1) - 1], 2)], "inlined()");
  EXPECT_EQ(Number(lines[0], 2), 3u);
  EXPECT_EQ(strings[Number(functions[Number(lines[1], 1) - 1], 2)], "main");
}

TEST(PprofTest, TheSameProfileGivesTheSameBytes) {
  const TargetProfile profile = SmallProfile();
  EXPECT_EQ(EncodePprof(profile, profile.heaps[0], {}),
            EncodePprof(profile, profile.heaps[0], {}));
}

TEST(PprofTest, TheFileIsGzipAndLeavesNothingBehindWhenItCannotBeWritten) {
  const std::string path =
      std::filesystem::temp_directory_path() / ("pprof_test." + std::to_string(getpid()));
  ASSERT_TRUE(WriteGzipFile(path, "content").ok());
  gzFile file = gzopen(path.c_str(), "r");
  char text[16] = {};
  EXPECT_EQ(gzread(file, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "content");
  gzclose(file);
  std::filesystem::remove(path);
  const Status status = WriteGzipFile("/nonexistent/file", "content");
  EXPECT_NE(status.message().find("cannot create /nonexistent/file"), std::string::npos);
}

}  // namespace
}  // namespace heapprofd
