#include "symbolize/symbolize_profile.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

ScopedFd OpenPath(const Mapping& mapping) {
  return ScopedFd(open(mapping.path.c_str(), O_RDONLY | O_CLOEXEC));
}

ScopedFd OpenNothing(const Mapping&) {
  return ScopedFd();
}

class SymbolizeProfileTest : public testing::Test {
 protected:
  MappingId AddMapping(const std::string& path, const std::string& build_id) {
    Mapping mapping;
    mapping.path = path;
    mapping.build_id = build_id;
    profile_.mappings.push_back(mapping);
    return static_cast<MappingId>(profile_.mappings.size() - 1);
  }

  FrameId AddFrame(MappingId mapping, uint64_t rel_pc) {
    profile_.frames.push_back({.mapping = mapping, .rel_pc = rel_pc, .lines = {}});
    return static_cast<FrameId>(profile_.frames.size() - 1);
  }

  SymbolizeReport Symbolize(ModuleOpener open_module) {
    const ProfileToSymbolize input{.code = CodeOf(profile_),
                                   .open_module = std::move(open_module)};
    return SymbolizeProfiles({&input, 1}, options_).front();
  }

  SymbolizeOptions options_;
  const TestProgram shapes_{"shapes"};
  const uint64_t draw_ = FindSymbol(shapes_, kDraw).start;
  TargetProfile profile_;
};

TEST_F(SymbolizeProfileTest, FramesOfAllMappingsOfAFileAreNamedTogether) {
  const MappingId first = AddMapping(shapes_.path, shapes_.build_id);
  const MappingId second = AddMapping(shapes_.path, shapes_.build_id);
  const FrameId named = AddFrame(first, draw_);
  const FrameId also_named = AddFrame(second, draw_ + 1);
  const FrameId outside = AddFrame(first, 0);
  const SymbolizeReport report = Symbolize(OpenPath);
  EXPECT_EQ(profile_.frames[named].lines.back().function, "shapes::Draw(long)");
  EXPECT_EQ(profile_.frames[also_named].lines.back().function, "shapes::Draw(long)");
  EXPECT_TRUE(profile_.frames[outside].lines.empty());
  ASSERT_EQ(report.modules.size(), 1u);
  EXPECT_EQ(report.modules[0].mappings, (std::vector<MappingId>{first, second}));
  EXPECT_EQ(report.modules[0].frames, 3u);
  EXPECT_EQ(report.modules[0].unnamed_frames, 1u);
  EXPECT_EQ(report.modules[0].reason, NoSymbolsReason::kNoSymbols);
  EXPECT_TRUE(report.modules[0].has_debug_info);
}

TEST_F(SymbolizeProfileTest, AFileThatIsGoneIsReportedWithWhatToDo) {
  AddFrame(AddMapping("/nowhere/libgone.so", shapes_.build_id), draw_);
  const SymbolizeReport report = Symbolize(OpenNothing);
  ASSERT_EQ(report.modules.size(), 1u);
  EXPECT_EQ(report.modules[0].reason, NoSymbolsReason::kNotFound);
  EXPECT_EQ(report.modules[0].unnamed_frames, 1u);
  EXPECT_TRUE(profile_.frames[0].lines.empty());
  EXPECT_EQ(
      report.modules[0].error,
      "Could not find /nowhere/libgone.so (Build ID: " + HexEncode(shapes_.build_id) +
          "): set PERFETTO_BINARY_PATH to a directory that has the file that ran "
          "as libgone.so (readelf -n shows a file's Build ID)");
}

TEST_F(SymbolizeProfileTest, AFileOfAnotherBuildIsReportedAndNotUsed) {
  AddFrame(AddMapping(shapes_.path, "another build"), draw_);
  AddFrame(AddMapping(shapes_.path, ""), draw_);
  const SymbolizeReport report = Symbolize(OpenPath);
  ASSERT_EQ(report.modules.size(), 2u);
  for (const ModuleSymbols& module : report.modules) {
    EXPECT_EQ(module.reason, NoSymbolsReason::kBuildIdMismatch);
    EXPECT_FALSE(module.error.empty());
    EXPECT_EQ(module.error.find("is gone"), std::string::npos) << module.error;
  }
  EXPECT_TRUE(report.modules[1].error.ends_with(
      "(no Build ID): the file that is there is not the one that ran, and without a "
      "build id no other can stand in; build it with -Wl,--build-id"))
      << report.modules[1].error;
  EXPECT_TRUE(profile_.frames[0].lines.empty());
  EXPECT_TRUE(profile_.frames[1].lines.empty());
}

TEST_F(SymbolizeProfileTest, AFileThatIsNoElfImageIsReported) {
  AddFrame(AddMapping("/etc/passwd", ""), 1);
  const SymbolizeReport report = Symbolize(OpenPath);
  ASSERT_EQ(report.modules.size(), 1u);
  EXPECT_EQ(report.modules[0].reason, NoSymbolsReason::kUnreadable);
}

TEST_F(SymbolizeProfileTest, MappingsWithoutAFileAreLeftAlone) {
  AddFrame(AddMapping("[vdso]", ""), 1);
  AddFrame(AddMapping("", ""), 1);
  AddFrame(AddMapping("//anon", ""), 1);
  AddFrame(kNoId, 1);
  AddFrame(77, 1);  // no such mapping
  const SymbolizeReport report = Symbolize(OpenPath);
  EXPECT_TRUE(report.modules.empty());
}

TEST_F(SymbolizeProfileTest, NamedFramesAreKeptWhenFramesAreAddedLater) {
  const MappingId mapping = AddMapping(shapes_.path, shapes_.build_id);
  AddFrame(mapping, draw_);
  profile_.frames[0].lines.resize(1);
  profile_.frames[0].lines[0].function = "kept";
  const FrameId later = AddFrame(mapping, draw_);
  const SymbolizeReport report = Symbolize(OpenPath);
  EXPECT_EQ(profile_.frames[0].lines[0].function, "kept");
  EXPECT_FALSE(profile_.frames[later].lines.empty());
  EXPECT_EQ(report.modules[0].frames, 2u);
  EXPECT_EQ(report.modules[0].reason, NoSymbolsReason::kNone);
}

}  // namespace
}  // namespace heapprofd
