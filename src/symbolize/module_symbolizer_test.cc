#include "symbolize/module_symbolizer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/text.h"
#include "symbolize/file_requests.h"
#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

class ModuleSymbolizerTest : public testing::Test {
 protected:
  ModuleSymbolizerTest()
      : directory_(fs::path(testing::TempDir()) /
                   ("module_symbolizer_" + std::to_string(getpid()) + "_" +
                    testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(directory_);
    request_.path = shapes_.path;
    request_.build_id = shapes_.build_id;
    request_.addresses = {{.rel_pc = draw_, .image_offset = 0, .load_bias = 0}};
    request_.open = [this] {
      return ScopedFd(open(shapes_.path.c_str(), O_RDONLY | O_CLOEXEC));
    };
  }

  ~ModuleSymbolizerTest() override { fs::remove_all(directory_); }

  ModuleAnswer Symbolize() {
    SymbolFinder finder(options_.binary_path, options_.lookup, DiskCache(""));
    return ModuleSymbolizer(options_, &finder).Symbolize(request_);
  }

  // Of the function that was called at the first address.
  static std::string FunctionOf(const ModuleAnswer& answer, uint64_t key) {
    const auto lines = answer.lines.Find(key);
    return lines && !lines->empty()
               ? std::string(answer.lines.Text(lines->back().function))
               : "";
  }

  const TestProgram shapes_{"shapes"};
  const uint64_t draw_ = FindSymbol(shapes_, kDraw).start;
  fs::path directory_;
  SymbolizeOptions options_;
  ModuleRequest request_;
};

TEST_F(ModuleSymbolizerTest, AnswersAreKeptByBuildIdAndNeedNoFileLater) {
  options_.cache_directory = directory_ / "cache";
  EXPECT_FALSE(Symbolize().from_cache);
  request_.path = "/nowhere/shapes";
  request_.open = [] { return ScopedFd(); };
  const ModuleAnswer again = Symbolize();
  EXPECT_TRUE(again.from_cache);
  EXPECT_TRUE(again.has_debug_info);
  EXPECT_EQ(FunctionOf(again, draw_), "shapes::Draw(long)");
}

TEST_F(ModuleSymbolizerTest, NewAddressesAreAddedToTheKeptOnes) {
  options_.cache_directory = directory_ / "cache";
  Symbolize();
  request_.addresses.push_back({.rel_pc = draw_ + 1, .image_offset = 0, .load_bias = 0});
  EXPECT_FALSE(Symbolize().from_cache);
  EXPECT_TRUE(Symbolize().from_cache);
}

TEST_F(ModuleSymbolizerTest, AnswersWithoutDebugInformationAreNotKept) {
  const TestProgram stripped("separate/shapes_by_id");
  options_.cache_directory = directory_ / "cache";
  request_.path = stripped.path;
  request_.open = [&] { return ScopedFd(dup(stripped.fd.get())); };
  EXPECT_EQ(Symbolize().reason, NoSymbolsReason::kNoSymbols);
  EXPECT_FALSE(fs::exists(directory_ / "cache"));
}

TEST_F(ModuleSymbolizerTest, AStrippedFileIsCompletedFromThePathOfTheUser) {
  const TestProgram stripped("separate/shapes_by_id");
  request_.path = stripped.path;
  request_.open = [&] { return ScopedFd(dup(stripped.fd.get())); };
  fs::copy_file(shapes_.path, directory_ / "with_symbols");
  options_.binary_path = {directory_.string()};
  const ModuleAnswer answer = Symbolize();
  EXPECT_TRUE(answer.has_debug_info) << answer.error;
  EXPECT_EQ(FunctionOf(answer, draw_), "shapes::Draw(long)");
}

TEST_F(ModuleSymbolizerTest, OfAStrippedFileItIsSaidWhereItsNamesAre) {
  const TestProgram stripped("separate/shapes_by_id");
  request_.path = directory_ / "stripped";
  fs::copy_file(stripped.path, request_.path);
  request_.open = [&] {
    return ScopedFd(open(request_.path.c_str(), O_RDONLY | O_CLOEXEC));
  };
  EXPECT_EQ(
      Symbolize().error,
      request_.path + " (Build ID: " + HexEncode(request_.build_id) +
          ") has no symbols for some of its functions: it is stripped; install its "
          "debug symbols (-dbgsym package), set DEBUGINFOD_URLS, or name a directory "
          "that has them in PERFETTO_BINARY_PATH");
}

TEST_F(ModuleSymbolizerTest, AFileThatIsGoneIsReplacedFromThePathOfTheUser) {
  request_.path = "/nowhere/libshapes.so";
  request_.open = nullptr;
  // As the recorder would have seen it: the load bias is right, nothing is corrected.
  request_.addresses[0].load_bias = uint64_t{1} << 40;
  EXPECT_EQ(Symbolize().reason, NoSymbolsReason::kNotFound);
  fs::copy_file(shapes_.path, directory_ / "libshapes.so");
  options_.binary_path = {directory_.string()};
  const ModuleAnswer answer = Symbolize();
  EXPECT_EQ(FunctionOf(answer, draw_), "shapes::Draw(long)") << answer.error;
}

TEST_F(ModuleSymbolizerTest, WhatFailsInAWorkerIsSaidOfItsFile) {
  EXPECT_EQ(AnswerOfDeadWorker("/lib/x.so", "its reader was stopped").error,
            "cannot symbolize /lib/x.so: its reader was stopped; the file is damaged, or "
            "was changed while it was read");
  options_.backend = SymbolBackend::kLlvmSymbolizer;
  options_.llvm_symbolizer = "/bin/true";
  EXPECT_EQ(Symbolize().error,
            "cannot symbolize " + shapes_.path +
                ": cannot use /bin/true: it ended before it had answered");
}

TEST_F(ModuleSymbolizerTest, TheMessageNamesFilesOfAnotherBuild) {
  request_.path = "/nowhere/libshapes.so";
  request_.open = nullptr;
  const TestProgram other("shapes_dwarf4");
  const std::string there = directory_ / "libshapes.so";
  fs::copy_file(other.path, there);
  options_.binary_path = {directory_.string()};
  const ModuleAnswer answer = Symbolize();
  EXPECT_EQ(answer.reason, NoSymbolsReason::kBuildIdMismatch);
  EXPECT_EQ(
      answer.error,
      "Could not find /nowhere/libshapes.so (Build ID: " + HexEncode(shapes_.build_id) +
          "): " + there + " is another build (Build ID: " + HexEncode(other.build_id) +
          "); put the file that ran as libshapes.so into a directory "
          "of PERFETTO_BINARY_PATH (readelf -n shows a file's Build "
          "ID)");
}

// Its parser opens nothing by itself: see file_requests.h.
TEST_F(ModuleSymbolizerTest, SplitDwarfIsReadAlthoughItsParserOpensNothing) {
  const TestProgram split("shapes_split");
  request_.path = split.path;
  request_.build_id = split.build_id;
  request_.addresses[0].rel_pc = FindSymbol(split, kDraw).start;
  request_.open = [&] { return ScopedFd(dup(split.fd.get())); };
  const ModuleAnswer answer = Symbolize();
  EXPECT_EQ(FunctionOf(answer, request_.addresses[0].rel_pc), "shapes::Draw(long)");
  const auto lines = answer.lines.Find(request_.addresses[0].rel_pc);
  ASSERT_TRUE(lines && !lines->empty());
  EXPECT_NE(lines->back().line, 0u);
}

TEST(OpenSplitDwarfTest, AParserGetsNoOtherFileWhateverItAsksFor) {
  EXPECT_FALSE(OpenSplitDwarf("/etc/passwd").valid());
  EXPECT_FALSE(OpenSplitDwarf("/dev/zero").valid());
  EXPECT_FALSE(OpenSplitDwarf("/proc/self/exe").valid());
  EXPECT_FALSE(OpenSplitDwarf("/nowhere").valid());
  EXPECT_FALSE(OpenSplitDwarf("").valid());
}

TEST_F(ModuleSymbolizerTest, AnswersSurviveTheirEncoding) {
  const ModuleAnswer answer = Symbolize();
  const auto decoded = ModuleAnswer::Decode(answer.Encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(FunctionOf(*decoded, draw_), "shapes::Draw(long)");
  EXPECT_TRUE(decoded->has_debug_info);
  EXPECT_FALSE(ModuleAnswer::Decode("").has_value());
}

// Perfetto's formula: real_bias = down(p_vaddr) - down(offset of the mapping).
TEST(AddressInFileTest, OnlyABiasThatIsTooSmallIsCorrected) {
  ElfIdentity file;
  const auto address = [&](uint64_t image_offset, uint64_t load_bias) {
    return AddressInFile(
        file, {.rel_pc = 7, .image_offset = image_offset, .load_bias = load_bias});
  };
  EXPECT_EQ(address(0x1000, 0), 7u);
  file.code.Add({.address = 0x201234, .alignment = 0x1000});
  EXPECT_EQ(address(0x1000, 0), 0x200007u);
  EXPECT_EQ(address(0x1000, 0x200000), 7u);
  EXPECT_EQ(address(0x1000, 0x300000), 7u);
  EXPECT_EQ(address(0x800000, 0), 7u);
}

class SegmentsOfSeveralBiases : public testing::Test {
 protected:
  SegmentsOfSeveralBiases() {
    file_.code.Add({.offset = 0x1100, .address = 0x2100, .file_size = 0x800});
    file_.code.Add({.offset = 0x3123, .address = 0x805123, .file_size = 0x100});
    file_.has_code = true;
  }

  ElfIdentity file_;
};

TEST_F(SegmentsOfSeveralBiases, OneBiasForAllOfThemIsCorrected) {
  EXPECT_EQ(AddressInFile(
                file_, {.rel_pc = 0x4130, .image_offset = 0x3000, .load_bias = 0x1000}),
            0x805130u);
}

TEST_F(SegmentsOfSeveralBiases, OfEachItsOwnBiasIsLeftAlone) {
  EXPECT_EQ(AddressInFile(
                file_, {.rel_pc = 0x2130, .image_offset = 0x1000, .load_bias = 0x1000}),
            0x2130u);
  EXPECT_EQ(
      AddressInFile(file_,
                    {.rel_pc = 0x805130, .image_offset = 0x3000, .load_bias = 0x802000}),
      0x805130u);
}

TEST_F(SegmentsOfSeveralBiases, OffsetsAreNotUsedWhereTheyAreNotThoseOfTheProcessesFile) {
  // Recorded with another file's offsets.
  EXPECT_EQ(AddressInFile(file_,
                          {.rel_pc = 0x2130, .image_offset = 0x2000, .load_bias = 0x100}),
            0x2130u);
  file_.has_code = false;
  EXPECT_EQ(AddressInFile(
                file_, {.rel_pc = 0x4130, .image_offset = 0x3000, .load_bias = 0x1000}),
            0x4130u);
}

}  // namespace
}  // namespace heapprofd
