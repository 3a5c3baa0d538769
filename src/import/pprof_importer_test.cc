// What other programs' pprof profiles say of a heap, and what they do not.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "import/import_file.h"
#include "import/made_pprof.h"

namespace heapprofd {
namespace {

class PprofImportTest : public testing::Test {
 protected:
  Status Import(MadePprof profile) {
    const std::string bytes = profile.Encode();
    MemorySource source(bytes);
    return ImportSource(source, "x.pb", builder_, &warnings_);
  }

  const ImportedDump& dump() const { return trace_.dumps[0]; }

  // "live 10,2 allocated ?,3": sizes and counts.
  std::string Figures() const {
    int64_t live_size = 0;
    int64_t live_count = 0;
    int64_t alloc_size = 0;
    int64_t alloc_count = 0;
    for (uint32_t i = 0; i < dump().allocation_count; ++i) {
      const int64_t size = trace_.allocations.size[dump().first_allocation + i];
      const int64_t count = trace_.allocations.count[dump().first_allocation + i];
      live_size += size;
      live_count += count;
      alloc_size += i < dump().first_live_row && size > 0 ? size : 0;
      alloc_count += i < dump().first_live_row && count > 0 ? count : 0;
    }
    const auto text = [](bool is_told, int64_t value) {
      return is_told ? std::to_string(value) : "?";
    };
    const ToldFigures& told = dump().told;
    return "live " + text(told.live_size, live_size) + "," +
           text(told.live_count, live_count) + " allocated " +
           text(told.alloc_size, alloc_size) + "," + text(told.alloc_count, alloc_count);
  }

  std::string Warnings() const {
    std::string text;
    for (const std::string& warning : warnings_)
      text += warning + "\n";
    return text;
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  std::vector<std::string> warnings_;
};

const std::pair<std::string, std::string> kAllocObjects = {"alloc_objects", "count"};
const std::pair<std::string, std::string> kAllocSpace = {"alloc_space", "bytes"};
const std::pair<std::string, std::string> kInuseObjects = {"inuse_objects", "count"};
const std::pair<std::string, std::string> kInuseSpace = {"inuse_space", "bytes"};

TEST_F(PprofImportTest, FourFiguresAreThoseOfTheFile) {
  ASSERT_TRUE(Import({.types = {kAllocObjects, kAllocSpace, kInuseObjects, kInuseSpace},
                      .samples = {{{"f", "main"}, {5, 500, 2, 200}},
                                  {{"g", "main"}, {1, 50, 1, 50}}}})
                  .ok());
  EXPECT_EQ(Figures(), "live 250,3 allocated 550,6");
  EXPECT_EQ(Warnings(), "");
}

TEST_F(PprofImportTest, WhatAFileDoesNotTellIsNotTold) {
  ASSERT_TRUE(
      Import({.types = {kInuseSpace}, .samples = {{{"f"}, {200}}, {{"g"}, {50}}}}).ok());
  EXPECT_EQ(Figures(), "live 250,? allocated ?,?");
}

TEST_F(PprofImportTest, AllocationsAloneSayNothingOfWhatIsLive) {
  ASSERT_TRUE(Import({.types = {kAllocObjects, kAllocSpace},
                      .samples = {{{"f"}, {2, 200}}, {{"g"}, {1, 50}}}})
                  .ok());
  EXPECT_EQ(Figures(), "live ?,? allocated 250,3");
}

TEST_F(PprofImportTest, SomeFiguresOfTwoKinds) {
  ASSERT_TRUE(Import({.types = {{"alloc-samples", "count"},
                                {"alloc-space", "bytes"},
                                {"heap-space", "bytes"}},
                      .samples = {{{"f"}, {2, 200, 30}}, {{"g"}, {1, 50, 70}}}})
                  .ok());
  EXPECT_EQ(Figures(), "live 100,? allocated 250,3");
}

// Profiles of a time: what is live was allocated before.
TEST_F(PprofImportTest, MoreIsLiveThanWasAllocated) {
  ASSERT_TRUE(Import({.types = {kAllocObjects, kAllocSpace, kInuseObjects, kInuseSpace},
                      .samples = {{{"f"}, {0, 0, 1000, 1048576}},
                                  {{"g"}, {9, 900, 1, 100}},
                                  {{"h"}, {5, 10, 1, 90}}}})
                  .ok());
  EXPECT_EQ(Figures(), "live 1048766,1002 allocated 910,14");
  EXPECT_EQ(Warnings(),
            "x.pb: more is live than was allocated in 2 of its samples: each figure is "
            "shown as the file has it\n");
}

TEST_F(PprofImportTest, AUnitIsScaledToBytes) {
  ASSERT_TRUE(
      Import({.types = {{"inuse_space", "megabytes"}}, .samples = {{{"f"}, {10}}}}).ok());
  EXPECT_EQ(Figures(), "live 10485760,? allocated ?,?");
}

TEST_F(PprofImportTest, AProfileOfSomethingElseIsRefusedWithWhatItIs) {
  EXPECT_EQ(Import({.types = {{"samples", "count"}, {"cpu", "nanoseconds"}},
                    .samples = {{{"f"}, {1, 10000000}}}})
                .message(),
            "cannot read x.pb: it is no profile of memory, but of samples in count, cpu "
            "in nanoseconds; go tool pprof shows it");
}

TEST_F(PprofImportTest, ValuesThatAreNotShownAreNamed) {
  ASSERT_TRUE(Import({.types = {{"objects", "count"},
                                {"space", "bytes"},
                                {"resident_space", "bytes"},
                                {"stale_space", "bytes"}},
                      .samples = {{{"f"}, {1, 1000, 900, 0}}},
                      .default_type = "space"})
                  .ok());
  EXPECT_EQ(Figures(), "live 1000,1 allocated ?,?");
  EXPECT_EQ(Warnings(),
            "x.pb: not shown, as no figure of a heap: resident_space, stale_space\n");
}

TEST_F(PprofImportTest, ADifferenceKeepsItsSigns) {
  ASSERT_TRUE(Import({.types = {kAllocSpace, kInuseSpace},
                      .samples = {{{"f"}, {-900, -900}}, {{"g"}, {1000, 1000}}}})
                  .ok());
  EXPECT_EQ(Figures(), "live 100,? allocated ?,?");
  EXPECT_EQ(Warnings(),
            "x.pb: 1 of its samples are negative, as in a difference of two profiles: "
            "sums may hide what grew\n");
}

TEST_F(PprofImportTest, MemoryWithoutAStackCounts) {
  ASSERT_TRUE(
      Import({.types = {kInuseSpace}, .samples = {{{}, {7}}, {{"f"}, {1}}}}).ok());
  EXPECT_EQ(Figures(), "live 8,? allocated ?,?");
  EXPECT_EQ(Warnings(), "");
}

// Two files one behind the other.
TEST_F(PprofImportTest, SamplesWithOtherValuesAreLeftOutAndSaid) {
  ASSERT_TRUE(
      Import({.types = {kInuseSpace, kAllocSpace}, .samples = {{{"f"}, {7}}}}).ok());
  EXPECT_EQ(trace_.Text(dump().reason),
            "none of its samples makes sense (a value for each of its 2 types, and a "
            "stack of locations that are there)");
  EXPECT_EQ(Warnings(), "x.pb: 1 record makes no sense and was left out\n");
}

TEST_F(PprofImportTest, AllValuesMayBeZero) {
  ASSERT_TRUE(Import({.types = {kInuseSpace}, .samples = {{{"f"}, {0}}}}).ok());
  EXPECT_EQ(trace_.Text(dump().reason), "all values of its samples are 0");
}

// A dump of the maximum, as our recordings with --dump-at-max leave it.
TEST_F(PprofImportTest, TheMaximumIsAMomentOfItsOwn) {
  ASSERT_TRUE(Import({.types = {kAllocObjects,
                                kAllocSpace,
                                {"objects", "count"},
                                {"space", "bytes"},
                                {"max_objects", "count"},
                                {"max_space", "bytes"}},
                      .samples = {{{"big"}, {1, 20000, 0, 0, 1, 20000}},
                                  {{"kept"}, {1, 1000, 1, 1000, 0, 0}}},
                      .default_type = "max_space"})
                  .ok());
  EXPECT_TRUE(dump().is_peak);
  EXPECT_EQ(dump().peak_bytes, 20000u);
  EXPECT_EQ(Figures(), "live 20000,1 allocated 20000,1");  // rows are of the peak
  ASSERT_EQ(trace_.cumulative.row_count(), 2u);
  EXPECT_EQ(trace_.cumulative.alloc_size[1] - trace_.cumulative.free_size[1], 1000);
  EXPECT_EQ(trace_.cumulative.alloc_size[0], 20000);
}

// The file's names are shown; one for linkers is used for what it is, and only then.
TEST_F(PprofImportTest, TheNamesOfTheFileAreTaken) {
  ASSERT_TRUE(Import({.types = {kInuseSpace},
                      .samples = {{{"node:events:addListener:616"}, {1}},
                                  {{"-[NSObject alloc]"}, {1}},
                                  {{"f<int>"}, {1}},
                                  {{"main"}, {1}}},
                      .functions = {{"node:events:addListener:616", "_addListener"},
                                    {"-[NSObject alloc]", "_objc_alloc"},
                                    {"f<int>", "_Z1fIiEvv"},
                                    {"main", "_main"}}})
                  .ok());
  std::map<std::string, std::string> names;
  for (size_t row = 0; row < trace_.frames.row_count(); ++row)
    names[std::string(trace_.Text(trace_.frames.name[row]))] =
        trace_.Text(trace_.symbols.name[trace_.frames.symbol_set[row]]);
  EXPECT_EQ(names, (std::map<std::string, std::string>{
                       {"node:events:addListener:616", "node:events:addListener:616"},
                       {"-[NSObject alloc]", "-[NSObject alloc]"},
                       {"_Z1fIiEvv", "f<int>"},
                       {"main", "main"}}));
}

TEST_F(PprofImportTest, FieldsMayComeInAnyOrder) {
  ASSERT_TRUE(Import({.types = {kInuseSpace},
                      .samples = {{{"f"}, {7}}},
                      .default_type = "inuse_space",
                      .has_strings_first = true})
                  .ok());
  EXPECT_EQ(Figures(), "live 7,? allocated ?,?");
}

}  // namespace
}  // namespace heapprofd
