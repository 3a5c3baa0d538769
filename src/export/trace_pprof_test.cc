// Profiles made of traces, decoded again.
#include "export/trace_pprof.h"

#include <gtest/gtest.h>

#include "export/decoded_profile.h"
#include "import/perfetto/test_traces.h"

namespace heapprofd {
namespace {

std::vector<EncodedProfile> Convert(const TestTrace& test,
                                    const PprofSelection& selection = {}) {
  std::vector<EncodedProfile> profiles;
  EXPECT_TRUE(ConvertToPprof(test.trace, selection, [&](const DumpProfile& profile) {
                profiles.push_back(Encoded(profile));
                return Status();
              }).ok());
  return profiles;
}

TEST(TracePprofTest, EachDumpIsAProfileOfTheStateAtItsTime) {
  const auto profiles = Convert(*ReadFixtureForConversion("two_dumps"));
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[0].pid, 7);
  EXPECT_EQ(profiles[0].heap_name, "libc.malloc");
  const Decoded first(profiles[0].bytes);
  EXPECT_EQ(first.types, (std::vector<std::string>{"alloc_objects", "alloc_space",
                                                   "objects", "space"}));
  EXPECT_EQ(first.default_type, "space");
  ASSERT_EQ(first.samples.size(), 2u);
  EXPECT_EQ(first.Sample(0), "demo::parse(int);main 10 1000 8 800");
  EXPECT_EQ(first.Sample(1), "render;main 1 500 1 500");
  const Decoded second(profiles[1].bytes);
  EXPECT_EQ(second.Sample(0), "demo::parse(int);main 12 1700 10 1500");
  EXPECT_EQ(second.Sample(1), "render;main 1 500 0 0");
}

TEST(TracePprofTest, TimesIntervalsAndTheCommandLineAreThere) {
  const auto profiles = Convert(*ReadFixtureForConversion("two_dumps"));
  const Decoded second(profiles.at(1).bytes);
  EXPECT_EQ(second.time_ns, 1700000000000003000);
  EXPECT_EQ(second.duration_ns, 3000 - 1100);
  EXPECT_EQ(second.period, 8192);
  EXPECT_TRUE(second.comments.contains("command: /usr/bin/demo --fast"));
  EXPECT_TRUE(second.comments.contains("sampling interval: 8192 bytes"));
}

TEST(TracePprofTest, EveryLocationHasItsAddressAndAMappingWithABuildId) {
  const auto profiles = Convert(*ReadFixtureForConversion("two_dumps"));
  const Decoded profile(profiles.at(0).bytes);
  ASSERT_EQ(profile.mappings.size(), 1u);
  EXPECT_EQ(profile.mappings.begin()->second.path, "/usr/libdemo.so");
  EXPECT_EQ(profile.mappings.begin()->second.build_id, "abcd01");
  ASSERT_EQ(profile.locations.size(), 3u);
  for (const auto& [id, location] : profile.locations)
    EXPECT_TRUE(profile.mappings.contains(location.mapping));
  // rel_pc 0x1401, load bias 0x400, mapped from 0x1000 of the file to 0x10000
  EXPECT_EQ(profile.locations.at(1).address, 0x10001u);
}

TEST(TracePprofTest, FunctionsThatAllocateAreMarkedToBeDropped) {
  const auto profiles = Convert(*ReadFixtureForConversion("two_dumps"));
  const Decoded profile(profiles.at(0).bytes);
  EXPECT_TRUE(std::any_of(
      profile.strings.begin(), profile.strings.end(),
      [](const std::string& text) { return text.starts_with("malloc|calloc|"); }));
}

TEST(TracePprofTest, InlinedCallsAndLinesComeFromSymbols) {
  const auto profiles = Convert(*ReadFixtureForConversion("symbols"));
  const Decoded profile(profiles.at(0).bytes);
  EXPECT_EQ(profile.Sample(0), "inner:3;demo::parse(int):40;main:5 1 100 1 100");
  EXPECT_TRUE(profile.mappings.begin()->second.has_inlines);
}

TEST(TracePprofTest, JavaFramesShowWhatKindTheyAreUnlessToldNotTo) {
  const auto test = ReadFixtureForConversion("java");
  const Decoded profile(Convert(*test).at(0).bytes);
  EXPECT_EQ(profile.types, (std::vector<std::string>{"alloc_objects", "alloc_space"}));
  EXPECT_EQ(profile.default_type, "alloc_space");
  EXPECT_EQ(
      profile.Sample(0),
      "a.b.c [aot];com.example.Log.write [interp]:50;com.example.Store.read "
      "[interp]:20;[DEDUPED] com.example.Store.abort | com.example.Store.close [aot] "
      "5 100");
  const Decoded plain(
      Convert(*test, {.pid = {}, .timestamps = {}, .annotate = false}).at(0).bytes);
  EXPECT_TRUE(plain.Sample(0).starts_with("a.b.c;com.example.Log.write:50;"));
}

TEST(TracePprofTest, HeapsHaveProfilesOfTheirOwn) {
  const auto profiles = Convert(*ReadFixtureForConversion("two_heaps"));
  ASSERT_EQ(profiles.size(), 4u);
  EXPECT_EQ(profiles[3].heap_name, "pool");
  EXPECT_EQ(Decoded(profiles[2].bytes).Sample(0), "demo::parse(int);main 2 150 2 150");
  EXPECT_EQ(Decoded(profiles[3].bytes).Sample(0), "demo::parse(int);main 3 30 0 0");
}

TEST(TracePprofTest, APeakIsTheStateAtThatMoment) {
  const auto profiles =
      Convert(*ReadFixtureForConversion("dump_at_max"), {.pid = 7, .timestamps = {}});
  ASSERT_EQ(profiles.size(), 2u);
  const Decoded second(profiles[1].bytes);
  EXPECT_EQ(second.Sample(0), "demo::parse(int);main 8 1500 8 1500");
  EXPECT_EQ(second.Sample(1), "render;main 1 90 1 40");
  EXPECT_TRUE(second.comments.contains(
      "space and objects are those of the moment when most was live"));
  EXPECT_TRUE(second.comments.contains("peak: 1540 bytes, 95 % limits 1500 and 1600"));
  EXPECT_EQ(profiles[0].bytes.find("95 %"), std::string::npos);  // it is not told
}

TEST(TracePprofTest, OfADumpAtMaximumThatTellsOfItsEndThereAreBoth) {
  const auto profiles = Convert(*ReadFixtureForConversion("dump_at_max_end"));
  ASSERT_EQ(profiles.size(), 1u);
  const Decoded profile(profiles[0].bytes);
  EXPECT_EQ(profile.types,
            (std::vector<std::string>{"alloc_objects", "alloc_space", "objects", "space",
                                      "max_objects", "max_space"}));
  EXPECT_EQ(profile.default_type, "max_space");
  ASSERT_EQ(profile.samples.size(), 2u);
  EXPECT_EQ(profile.Sample(0), "demo::parse(int);main 30 3000 5 500 6 1000");
  EXPECT_EQ(profile.Sample(1), "render;main 7 70 7 70 0 0");
  EXPECT_TRUE(profile.comments.contains("peak: 1090 bytes, 95 % limits 1000 and 1200"));
}

TEST(TracePprofTest, CallsitesGiveTheSameProfilesAsWholeStacks) {
  for (const char* name : {"two_dumps", "two_heaps", "dump_at_max_end"}) {
    const auto whole = Convert(*ReadFixtureForConversion(name));
    const auto callsites = Convert(*ReadFixture(name));
    ASSERT_EQ(whole.size(), callsites.size());
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_EQ(whole[i].bytes, callsites[i].bytes) << name;
  }
}

TEST(TracePprofTest, FilesAreNamedByWhatIsInThem) {
  EXPECT_EQ(
      PprofFileName({.pid = 7, .heap_name = "libc.malloc", .encode = {}, .dump = 0}, 3),
      "heap_dump.3.7.libc.malloc");
  EXPECT_EQ(PprofFileName({.pid = 7, .heap_name = "../a b", .encode = {}, .dump = 0}, 1),
            "heap_dump.1.7..._a_b");
  EXPECT_EQ(PprofFileName({.pid = 7, .heap_name = {}, .encode = {}}, 2),
            "java_heap_dump.2.7");
}

TEST(TracePprofTest, AProgramThatWasReplacedByExecHasAProfileOfItsOwn) {
  const auto profiles = Convert(*ReadFixtureForConversion("exec"));
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(Decoded(profiles[1].bytes).samples.size(), 1u);
  EXPECT_TRUE(Decoded(profiles[1].bytes).comments.contains("command: demo"));
}

TEST(TracePprofTest, DumpsAreSelectedByPidAndTime) {
  const auto test = ReadFixtureForConversion("two_dumps");
  EXPECT_EQ(Convert(*test, {.pid = 7, .timestamps = {}}).size(), 2u);
  EXPECT_EQ(Convert(*test, {.pid = 8, .timestamps = {}}).size(), 0u);
  const auto second = Convert(*test, {.pid = {}, .timestamps = {3000}});
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(Decoded(second[0].bytes).Sample(0), "demo::parse(int);main 12 1700 10 1500");
}

TEST(TracePprofTest, NothingToConvertHasAReason) {
  const auto test = ReadFixtureForConversion("two_dumps");
  EXPECT_EQ(ReasonForNoProfile(test->trace, {.pid = 8, .timestamps = {}}),
            "the trace has no dump of --pid 8; it has dumps of 7");
  EXPECT_EQ(ReasonForNoProfile(test->trace, {.pid = {}, .timestamps = {5}}),
            "the trace has no dump at --timestamps 5; it has dumps at 2000, 3000");
  EXPECT_NE(ReasonForNoProfile(ReadFixtureForConversion("system")->trace, {})
                .find("no heap profile"),
            std::string::npos);
  EXPECT_EQ(ReasonForNoProfile(ReadFixtureForConversion("flags")->trace, {}),
            "another session was already profiling the process; end that one first");
}

TEST(TracePprofTest, WhatOtherWritersDoAtTheEdgesOfTheFormatIsTaken) {
  const auto test = ReadFixtureForConversion("quirks");
  const auto profiles = Convert(*test);
  ASSERT_EQ(profiles.size(), 1u);
  const Decoded profile(profiles[0].bytes);
  ASSERT_EQ(profile.samples.size(), 4u);
  EXPECT_EQ(profile.Sample(0), "main;ERROR UNWIND_INFO 1 100 1 100");
  EXPECT_EQ(profile.Sample(1),
            "do_syscall_64;main 2 9223372036854775807 2 9223372036854775807");
  EXPECT_EQ(profile.Sample(2), "main 0 0 -3 -30");  // the leaf has no name
  EXPECT_EQ(profile.Sample(3), "main 4 40 0 0");
  std::map<std::string, std::string> build_ids;
  for (const auto& [id, mapping] : profile.mappings)
    build_ids[mapping.path] = mapping.build_id;
  EXPECT_EQ(build_ids,
            (std::map<std::string, std::string>{
                {"/system/lib/libwhole.so", "7F0715C286F8B16C10E4AD349CDA3B9B0"},
                {"/kernel", ""},
                {"[vdso]", "abcd"},
                {"[unknown]", ""}}));
  EXPECT_EQ(test->trace.stats.Get(StatId::kHeapprofdRejectedConcurrent, 8), 1);
}

}  // namespace
}  // namespace heapprofd
