// Profiles made of traces, decoded again.
#include "convert/trace_pprof.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "trace/message_reader.h"
#include "trace/test_traces.h"

namespace heapprofd {
namespace {

// What tests look at in a perftools.profiles.Profile.
struct Decoded {
  struct Function {
    std::string name;
    std::string system_name;
    std::string file;
  };

  struct Location {
    uint64_t mapping = 0;
    uint64_t address = 0;
    std::vector<std::pair<uint64_t, int64_t>> lines;  // function, line
  };

  struct Mapping {
    std::string path;
    std::string build_id;
    bool has_inlines = false;
  };

  explicit Decoded(const std::string& bytes) {
    ReadStrings(bytes);
    MessageReader reader(bytes);
    while (reader.Next())
      ReadField(reader);
  }

  void ReadStrings(const std::string& bytes) {
    MessageReader reader(bytes);
    while (reader.Next()) {
      if (reader.field() == 6)
        strings.emplace_back(reader.Bytes());
    }
  }

  void ReadField(MessageReader& reader) {
    const uint32_t field = reader.field();
    if (field == 9)
      time_ns = reader.Int();
    else if (field == 10)
      duration_ns = reader.Int();
    else if (field == 12)
      period = reader.Int();
    else if (field == 13)
      comments.insert(strings.at(reader.Uint()));
    else if (field == 14)
      default_type = strings.at(reader.Uint());
    else if (field >= 1 && field <= 5)
      ReadMessage(field, reader.Bytes());
  }

  void ReadMessage(uint32_t kind, std::string_view bytes) {
    MessageReader reader(bytes);
    std::map<uint32_t, uint64_t> numbers;
    std::vector<uint64_t> stack;
    std::vector<int64_t> values;
    Location location;
    while (reader.Next()) {
      const uint32_t field = reader.field();
      if (kind == 2 && field == 1)
        reader.Uints([&](uint64_t id) { stack.push_back(id); });
      else if (kind == 2 && field == 2)
        reader.Uints([&](uint64_t v) { values.push_back(static_cast<int64_t>(v)); });
      else if (kind == 4 && field == 4)
        location.lines.push_back(ReadLine(reader.Bytes()));
      else
        numbers[field] = reader.Uint();
    }
    if (kind == 1)
      types.push_back(strings.at(numbers[1]));
    else if (kind == 2)
      samples.emplace_back(stack, values);
    else if (kind == 3)
      mappings[numbers[1]] = {strings.at(numbers[5]), strings.at(numbers[6]),
                              numbers[10] != 0};
    else if (kind == 5)
      functions[numbers[1]] = {strings.at(numbers[2]), strings.at(numbers[3]),
                               strings.at(numbers[4])};
    if (kind == 4) {
      location.mapping = numbers[2];
      location.address = numbers[3];
      locations[numbers[1]] = location;
    }
  }

  static std::pair<uint64_t, int64_t> ReadLine(std::string_view bytes) {
    std::pair<uint64_t, int64_t> line;
    MessageReader reader(bytes);
    while (reader.Next()) {
      if (reader.field() == 1)
        line.first = reader.Uint();
      else if (reader.field() == 2)
        line.second = reader.Int();
    }
    return line;
  }

  // "render;main 1 500 1 500": a sample, leaf first.
  std::string Sample(size_t index) const {
    std::string text;
    for (const uint64_t id : samples.at(index).first) {
      for (const auto& [function, line] : locations.at(id).lines)
        text += (text.empty() ? "" : ";") + functions.at(function).name +
                (line != 0 ? ":" + std::to_string(line) : "");
    }
    for (const int64_t value : samples.at(index).second)
      text += " " + std::to_string(value);
    return text;
  }

  std::vector<std::string> strings;
  std::vector<std::string> types;
  std::vector<std::pair<std::vector<uint64_t>, std::vector<int64_t>>> samples;
  std::map<uint64_t, Mapping> mappings;
  std::map<uint64_t, Location> locations;
  std::map<uint64_t, Function> functions;
  std::set<std::string> comments;
  std::string default_type;
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  int64_t period = 0;
};

std::vector<DumpProfile> Convert(const TestTrace& test,
                                 const PprofSelection& selection = {}) {
  std::vector<DumpProfile> profiles;
  EXPECT_TRUE(ConvertToPprof(test.trace, selection, [&](const DumpProfile& profile) {
                profiles.push_back(profile);
                return Status();
              }).ok());
  return profiles;
}

TEST(TracePprofTest, EachDumpIsAProfileOfTheStateAtItsTime) {
  const auto profiles = Convert(*ReadFixture("two_dumps"));
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
  const auto profiles = Convert(*ReadFixture("two_dumps"));
  const Decoded second(profiles.at(1).bytes);
  EXPECT_EQ(second.time_ns, 1700000000000003000);
  EXPECT_EQ(second.duration_ns, 3000 - 1100);
  EXPECT_EQ(second.period, 8192);
  EXPECT_TRUE(second.comments.contains("command: /usr/bin/demo --fast"));
  EXPECT_TRUE(second.comments.contains("sampling interval: 8192 bytes"));
}

TEST(TracePprofTest, EveryLocationHasItsAddressAndAMappingWithABuildId) {
  const auto profiles = Convert(*ReadFixture("two_dumps"));
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
  const auto profiles = Convert(*ReadFixture("two_dumps"));
  const Decoded profile(profiles.at(0).bytes);
  EXPECT_TRUE(std::any_of(
      profile.strings.begin(), profile.strings.end(),
      [](const std::string& text) { return text.starts_with("malloc|calloc|"); }));
}

TEST(TracePprofTest, InlinedCallsAndLinesComeFromSymbols) {
  const auto profiles = Convert(*ReadFixture("symbols"));
  const Decoded profile(profiles.at(0).bytes);
  EXPECT_EQ(profile.Sample(0), "inner:3;demo::parse(int):40;main:5 1 100 1 100");
  EXPECT_TRUE(profile.mappings.begin()->second.has_inlines);
}

TEST(TracePprofTest, JavaFramesShowWhatKindTheyAreUnlessToldNotTo) {
  const auto test = ReadFixture("java");
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
  const auto profiles = Convert(*ReadFixture("two_heaps"));
  ASSERT_EQ(profiles.size(), 4u);
  EXPECT_EQ(profiles[3].heap_name, "pool");
  EXPECT_EQ(Decoded(profiles[2].bytes).Sample(0), "demo::parse(int);main 2 150 2 150");
  EXPECT_EQ(Decoded(profiles[3].bytes).Sample(0), "demo::parse(int);main 3 30 0 0");
}

TEST(TracePprofTest, APeakIsTheStateAtThatMoment) {
  const auto profiles =
      Convert(*ReadFixture("dump_at_max"), {.pid = 7, .timestamps = {}});
  ASSERT_EQ(profiles.size(), 2u);
  const Decoded second(profiles[1].bytes);
  EXPECT_EQ(second.Sample(0), "demo::parse(int);main 8 1500 8 1500");
  EXPECT_EQ(second.Sample(1), "render;main 1 90 1 40");
  EXPECT_TRUE(second.comments.contains(
      "space and objects are those of the moment when most was live"));
}

TEST(TracePprofTest, AProgramThatWasReplacedByExecHasAProfileOfItsOwn) {
  const auto profiles = Convert(*ReadFixture("exec"));
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(Decoded(profiles[1].bytes).samples.size(), 1u);
  EXPECT_TRUE(Decoded(profiles[1].bytes).comments.contains("command: demo"));
}

TEST(TracePprofTest, DumpsAreSelectedByPidAndTime) {
  const auto test = ReadFixture("two_dumps");
  EXPECT_EQ(Convert(*test, {.pid = 7, .timestamps = {}}).size(), 2u);
  EXPECT_EQ(Convert(*test, {.pid = 8, .timestamps = {}}).size(), 0u);
  const auto second = Convert(*test, {.pid = {}, .timestamps = {3000}});
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(Decoded(second[0].bytes).Sample(0), "demo::parse(int);main 12 1700 10 1500");
}

TEST(TracePprofTest, NothingToConvertHasAReason) {
  const auto test = ReadFixture("two_dumps");
  EXPECT_EQ(ReasonForNoProfile(test->trace, {.pid = 8, .timestamps = {}}),
            "the trace has no dump of --pid 8; it has dumps of 7");
  EXPECT_EQ(ReasonForNoProfile(test->trace, {.pid = {}, .timestamps = {5}}),
            "the trace has no dump with samples at --timestamps 5; it has dumps at 2000, "
            "3000");
  EXPECT_NE(ReasonForNoProfile(ReadFixture("system")->trace, {}).find("no heap profile"),
            std::string::npos);
  EXPECT_NE(ReasonForNoProfile(ReadFixture("flags")->trace, {}).find("another session"),
            std::string::npos);
}

}  // namespace
}  // namespace heapprofd
