// What the files of programs tell, with real files and broken ones.
#include "engine/obstacle.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

Obstacle KindOf(const std::string& program) {
  return FindObstacle(program, "").kind;
}

class ObstacleTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "obstacle_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }

  void TearDown() override { fs::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
    chmod((folder_ + "/" + name).c_str(), 0755);
    return folder_ + "/" + name;
  }

  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string folder_;
};

TEST_F(ObstacleTest, AnOrdinaryProgramHasNoObstacle) {
  EXPECT_EQ(KindOf("/bin/true"), Obstacle::kNone);
  EXPECT_EQ(KindOf("true"), Obstacle::kNone);
  EXPECT_EQ(KindOf("no-such-program-anywhere"), Obstacle::kNone);
}

TEST_F(ObstacleTest, AStaticProgramIsAnObstacleEvenBehindAScript) {
  const std::string static_program = HPD_TEST_PROGRAMS "/static_hello";
  EXPECT_EQ(KindOf(static_program), Obstacle::kStatic);
  const std::string script = Write("script", "#! " + static_program + " -x\n");
  EXPECT_EQ(KindOf(script), Obstacle::kStatic);
}

TEST_F(ObstacleTest, WhatToDoWithAStaticProgramItsSymbolsTell) {
  const std::string program = HPD_TEST_PROGRAMS "/static_hello";
  const auto text = [](const std::string& file) {
    return DescribeObstacle({.kind = Obstacle::kStatic, .file = file});
  };
  EXPECT_NE(text(program).find("heap_profile -p PID"), std::string::npos);
  EXPECT_NE(text(program).find("is statically linked, so a library cannot be preloaded "
                               "into it; start it by itself and record it with"),
            std::string::npos);
  const std::string stripped = folder_ + "/stripped";
  ASSERT_EQ(system(("strip -o " + stripped + " " + program).c_str()), 0);
  EXPECT_NE(text(stripped).find("it has no symbols of malloc and free"),
            std::string::npos);
}

TEST_F(ObstacleTest, AGoProgramIsKnownByItsAllocator) {
  const std::string program = folder_ + "/go";
  const std::string make =
      "echo 'int runtime_mallocgc; int main() { return 0; }' | cc -xc "
      "-static -o " +
      program + " - && objcopy --redefine-sym runtime_mallocgc=runtime.mallocgc " +
      program;
  ASSERT_EQ(system(make.c_str()), 0);
  EXPECT_NE(
      DescribeObstacle(FindObstacle(program, ""))
          .find(", and it is a Go program, whose allocator cannot be hooked; use Go's"),
      std::string::npos);
}

TEST_F(ObstacleTest, MissingInterpretersAreFound) {
  const std::string script = Write("script", "#! /no/such -x\n");
  EXPECT_EQ(MissingInterpreter(script), "/no/such");
  EXPECT_EQ(MissingInterpreter(Write("outer", "#!" + script + "\n")), "/no/such");
  EXPECT_EQ(MissingInterpreter("/bin/true"), "");
  EXPECT_EQ(MissingInterpreter(Write("short",
                                     "\x7f"
                                     "ELF")),
            "");
  EXPECT_EQ(MissingInterpreter("/nonexistent"), "");
}

TEST_F(ObstacleTest, AMissingLoaderIsFoundBelowAScript) {
  std::string program = ReadFile("/bin/true");
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  const size_t at = program.find(loader);
  ASSERT_NE(at, std::string::npos);
  program.replace(at, loader.size(), "/lib64/ld-linux-x86-64.so.3");
  const std::string file = Write("program", program);
  EXPECT_EQ(MissingInterpreter(Write("script", "#!" + file + "\n")),
            "/lib64/ld-linux-x86-64.so.3");
}

TEST_F(ObstacleTest, A32BitProgramIsAnObstacle) {
  std::string program = ReadFile("/bin/true").substr(0, 4096);
  program[4] = 1;  // EI_CLASS: ELFCLASS32
  const std::string small = Write("small", program);
  EXPECT_EQ(DescribeObstacle(FindObstacle(small, "")),
            small +
                " is a 32-bit program, and only 64-bit ones can be profiled; use its "
                "64-bit build");
}

TEST_F(ObstacleTest, AProgramForAnotherMachineIsAnObstacle) {
  std::string program = ReadFile("/bin/true").substr(0, 4096);
  program[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_RISCV);
  const std::string other = Write("other", program);
  EXPECT_EQ(DescribeObstacle(FindObstacle(other, "")),
            other +
                " is a program for another machine, and only those for x86-64 can be "
                "profiled; use its build for this machine");
}

TEST_F(ObstacleTest, FilesThatPretendToBeProgramsAreNoTrap) {
  EXPECT_EQ(KindOf(Write("empty", "")), Obstacle::kNone);
  EXPECT_EQ(KindOf(Write("text", "just text")), Obstacle::kNone);
  EXPECT_EQ(KindOf(Write("shebang", "#!")), Obstacle::kNone);
  EXPECT_EQ(KindOf(Write("shebang2", "#!   \n")), Obstacle::kNone);
  const std::string itself = folder_ + "/loop";
  EXPECT_EQ(KindOf(Write("loop", "#!" + itself + "\n")), Obstacle::kNone);
  std::string program = ReadFile("/bin/true").substr(0, 4096);
  std::fill(program.begin() + 32, program.begin() + 40, '\xff');  // e_phoff
  EXPECT_EQ(KindOf(Write("far", program)), Obstacle::kNone);
  EXPECT_EQ(KindOf(Write("short", program.substr(0, 8))), Obstacle::k32Bit);
}

TEST_F(ObstacleTest, ARelativePathBeginsInTheGivenDirectory) {
  fs::copy(HPD_TEST_PROGRAMS "/static_hello", folder_ + "/program");
  EXPECT_EQ(FindObstacle("./program", folder_).kind, Obstacle::kStatic);
  EXPECT_EQ(KindOf("./program"), Obstacle::kNone);
}

TEST_F(ObstacleTest, EveryObstacleIsToldWithItsFileAndARemedy) {
  for (const Obstacle kind :
       {Obstacle::k32Bit, Obstacle::kStatic, Obstacle::kPrivileged}) {
    const std::string text = DescribeObstacle({.kind = kind, .file = "/bin/x"});
    EXPECT_TRUE(text.starts_with("/bin/x ")) << text;
    EXPECT_NE(text.find("; "), std::string::npos) << text;
  }
  EXPECT_EQ(DescribeObstacle({}), "");
  EXPECT_NE(DescribeObstacle({.kind = Obstacle::kPrivileged, .file = "/bin/x"})
                .find("gains privileges when it starts (setuid or capabilities)"),
            std::string::npos);
}

}  // namespace
}  // namespace heapprofd
