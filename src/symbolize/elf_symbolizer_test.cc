#include "symbolize/elf_symbolizer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

using Lines = std::vector<SourceLine>;

constexpr char kHiddenHelper[] = "_ZL12HiddenHelperl";

ElfSymbolizer OpenSymbolizer(const TestProgram& program,
                             const std::string& debug_path = kStandardDebugPath) {
  auto symbolizer = ElfSymbolizer::Open(
      program.file(), FindDebugFiles(program.file(), debug_path, nullptr));
  EXPECT_TRUE(symbolizer.ok()) << symbolizer.status().message();
  return std::move(symbolizer).value();
}

// "function file:line" per line, innermost first, the files without their folders.
std::string ToText(const Lines& lines) {
  std::string text;
  for (const SourceLine& line : lines) {
    text += line.function.str() + " " +
            std::filesystem::path(line.file.str()).filename().string() + ":" +
            std::to_string(line.line) + "\n";
  }
  return text;
}

std::vector<Lines> SymbolizeAll(ElfSymbolizer& symbolizer, SymbolRange range) {
  std::vector<uint64_t> addresses;
  for (uint64_t address = range.start; address < range.end; ++address)
    addresses.push_back(address);
  return SymbolizeAddresses(symbolizer, addresses);
}

// The answer for the deepest inlined address of the function.
Lines DeepestChain(ElfSymbolizer& symbolizer, SymbolRange range) {
  const std::vector<Lines> all = SymbolizeAll(symbolizer, range);
  return *std::ranges::max_element(all, {},
                                   [](const Lines& lines) { return lines.size(); });
}

// What is known of shapes.cc with debug information: in every form of it the same.
void ExpectShapesWithLines(const TestProgram& program,
                           const TestProgram& layout,
                           const std::string& debug_path = kStandardDebugPath) {
  ElfSymbolizer symbolizer = OpenSymbolizer(program, debug_path);
  EXPECT_TRUE(symbolizer.has_debug_info());
  const Lines chain = DeepestChain(symbolizer, FindSymbol(layout, kDraw));
  ASSERT_EQ(chain.size(), 4u) << ToText(chain);
  EXPECT_EQ(ToText({chain[0]}), "shapes::Buffer<long>::Grow(long) shapes.h:12\n");
  EXPECT_EQ(ToText({chain[1]}),
            "shapes::Outer(shapes::Buffer<long>&, long) shapes.cc:35\n");
  // Compilers number the lambda alike, but gcc writes no linkage name for it.
  EXPECT_NE(chain[2].function.str().find("operator()"), std::string::npos)
      << chain[2].function.str();
  EXPECT_EQ(chain[2].line, 42u);
  EXPECT_EQ(ToText({chain[3]}), "shapes::Draw(long) shapes.cc:44\n");
  EXPECT_EQ(chain[3].system_name, kDraw);
  EXPECT_TRUE(chain[3].file.str().ends_with("testdata/shapes.cc")) << chain[3].file.str();
  const uint64_t assembler = FindSymbol(layout, "asm_sized").start;
  EXPECT_EQ(
      SymbolizeAddresses(symbolizer, std::vector{assembler}).front().front().function,
      "asm_sized");
}

class ShapesTest : public testing::TestWithParam<std::string> {};

TEST_P(ShapesTest, InlinedCallsAreListedInnermostFirstWithTheirLines) {
  const TestProgram program(GetParam());
  ExpectShapesWithLines(program, program);
}

INSTANTIATE_TEST_SUITE_P(
    WithDebugInfo,
    ShapesTest,
    testing::Values("shapes", "shapes_dwarf4", "shapes_split", "shapes_no_id"));

TEST(ElfSymbolizerTest, DebugFilesAreFoundByDebugLink) {
  ExpectShapesWithLines(TestProgram("shapes_linked"), TestProgram("shapes"));
}

TEST(ElfSymbolizerTest, DebugFilesAreFoundByBuildId) {
  const TestProgram layout("shapes");
  const TestProgram stripped("separate/shapes_by_id");
  const std::string id = HexEncode(layout.build_id);
  const ScratchDirectory root;
  const std::filesystem::path directory = root.path() / ".build-id" / id.substr(0, 2);
  std::filesystem::create_directories(directory);
  std::filesystem::copy_file(layout.path, directory / (id.substr(2) + ".debug"));
  ExpectShapesWithLines(stripped, layout, "+:" + root.path().string());
  EXPECT_FALSE(OpenSymbolizer(stripped).has_debug_info());
}

TEST(ElfSymbolizerTest, NamesSharedBetweenProgramsByDwzAreFollowed) {
  if (!TestProgram::Exists("shapes_dwz"))
    GTEST_SKIP() << "dwz is not installed";
  ExpectShapesWithLines(TestProgram("shapes_dwz"), TestProgram("shapes_dwarf4"));
}

TEST(ElfSymbolizerTest, ADebugFileOfAnotherBuildIsNotUsed) {
  const TestProgram program("wrong/shapes_linked");
  ElfSymbolizer symbolizer = OpenSymbolizer(program);
  EXPECT_FALSE(symbolizer.has_debug_info());
  const SymbolRange draw = FindSymbol(TestProgram("shapes"), kDraw);
  EXPECT_TRUE(SymbolizeAddresses(symbolizer, std::vector{draw.start}).front().empty());
}

TEST(ElfSymbolizerTest, WithoutDebugInfoEveryFunctionHasItsSymbol) {
  const TestProgram program("shapes_no_debug");
  ElfSymbolizer symbolizer = OpenSymbolizer(program);
  EXPECT_FALSE(symbolizer.has_debug_info());
  for (const Lines& lines : SymbolizeAll(symbolizer, FindSymbol(program, kHiddenHelper)))
    EXPECT_EQ(ToText(lines), "HiddenHelper(long) :0\n");
  const Lines plain =
      SymbolizeAddresses(symbolizer,
                         std::vector{FindSymbol(program, "plain_c_name").start})
          .front();
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].function, "plain_c_name");
  EXPECT_EQ(plain[0].system_name, "plain_c_name");
}

TEST(ElfSymbolizerTest, ANameIsNotGuessedWhereAStrippedProgramExportsNone) {
  const TestProgram program("shapes_stripped");
  ElfSymbolizer symbolizer = OpenSymbolizer(program);
  // The functions' order is the compiler's choice; every answer must be an exported
  // function.
  std::vector<uint64_t> addresses;
  for (uint64_t address = 0x1000; address < 0x1600; ++address)
    addresses.push_back(address);
  size_t unnamed = 0;
  bool has_draw = false;
  for (const Lines& lines : SymbolizeAddresses(symbolizer, addresses)) {
    unnamed += lines.empty() ? 1u : 0u;
    has_draw |= !lines.empty() && lines[0].function == "shapes::Draw(long)";
    EXPECT_FALSE(!lines.empty() && lines[0].function == "HiddenHelper(long)");
  }
  EXPECT_TRUE(has_draw);
  EXPECT_GT(unnamed, 0u);
}

TEST(ElfSymbolizerTest, MiniDebugInfoNamesLocalFunctionsOfAStrippedProgram) {
  const TestProgram program("shapes_mini");
  const SymbolRange helper = FindSymbol(TestProgram("shapes_no_debug"), kHiddenHelper);
  ElfSymbolizer symbolizer = OpenSymbolizer(program);
  for (const Lines& lines : SymbolizeAll(symbolizer, helper))
    EXPECT_EQ(ToText(lines), "HiddenHelper(long) :0\n");
}

TEST(ElfSymbolizerTest, RustNamesAreReadable) {
  if (!TestProgram::Exists("greet"))
    GTEST_SKIP() << "rustc is not installed";
  const TestProgram program("greet");
  ElfSymbolizer symbolizer = OpenSymbolizer(program);
  std::vector<uint64_t> addresses;
  for (uint64_t address = 0; address < 0x80000; ++address)
    addresses.push_back(address);
  bool has_function = false;
  bool has_method = false;
  for (const Lines& lines : SymbolizeAddresses(symbolizer, addresses)) {
    if (lines.empty() || !lines.back().file.str().ends_with("greet.rs"))
      continue;
    has_function |= lines.back().function == "greet::make_greeter";
    has_method |= lines.back().function == "greet::Greeter::greet" ||
                  lines.back().function == "<greet::Greeter>::greet";
  }
  EXPECT_TRUE(has_function);
  EXPECT_TRUE(has_method);
}

TEST(ElfSymbolizerTest, AFileWithAnotherBuildIdIsRefused) {
  const TestProgram program("shapes");
  ModuleFile file = program.file();
  file.build_id = "\x01\x02";
  const auto symbolizer = ElfSymbolizer::Open(file);
  ASSERT_FALSE(symbolizer.ok());
  EXPECT_EQ(symbolizer.status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(symbolizer.status().message().starts_with("cannot read symbols of " +
                                                        program.path + ": the file has "))
      << symbolizer.status().message();
  EXPECT_TRUE(symbolizer.status().message().ends_with(
      "the process ran build id 0102; profile again, or put the old file back"))
      << symbolizer.status().message();
}

TEST(ElfSymbolizerTest, FilesThatAreNoElfImagesAreRefused) {
  const ScratchDirectory directory;
  const std::string path = directory.path() / "script";
  std::ofstream(path) << "#!/bin/sh\n";
  const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto symbolizer =
      ElfSymbolizer::Open({.fd = fd.get(), .path = path, .build_id = ""});
  ASSERT_FALSE(symbolizer.ok());
  EXPECT_EQ(symbolizer.status().code(), StatusCode::kCorrupt);
}

// Found by fuzzing: libdw looks for the end of a string beyond the end of its section.
TEST(ElfSymbolizerTest, DebugInfoWhoseStringsDoNotEndIsNotRead) {
  const TestProgram program("shapes_dwarf4");
  const SectionRange strings = FindSection(program, ".debug_str");
  const ScratchDirectory directory;
  const std::string path = directory.path() / "unended";
  std::filesystem::copy_file(program.path, path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(strings.offset + strings.size - 1));
  file.put('x');
  file.close();
  ElfSymbolizer symbolizer = OpenSymbolizer(TestProgram(path));
  EXPECT_FALSE(symbolizer.has_debug_info());
  const uint64_t draw = FindSymbol(program, kDraw).start;
  EXPECT_EQ(ToText(SymbolizeAddresses(symbolizer, std::vector{draw}).front()),
            "shapes::Draw(long) :0\n");
}

TEST(ElfSymbolizerTest, AddressesMayComeInAnyOrderAndRepeatedly) {
  const TestProgram program("shapes");
  ElfSymbolizer symbolizer = OpenSymbolizer(program);
  const uint64_t draw = FindSymbol(program, kDraw).start;
  const uint64_t helper = FindSymbol(program, kHiddenHelper).start;
  const auto answer = SymbolizeAddresses(
      symbolizer, std::vector<uint64_t>{draw, 0, helper, draw, UINT64_MAX});
  ASSERT_EQ(answer.size(), 5u);
  EXPECT_EQ(answer[0].back().system_name, kDraw);
  EXPECT_TRUE(answer[1].empty());
  EXPECT_EQ(answer[2].back().system_name, kHiddenHelper);
  EXPECT_EQ(ToText(answer[3]), ToText(answer[0]));
  EXPECT_TRUE(answer[4].empty());
}

}  // namespace
}  // namespace heapprofd
