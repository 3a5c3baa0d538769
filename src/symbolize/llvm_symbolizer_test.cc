#include "symbolize/llvm_symbolizer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

TEST(LlvmAnswerTest, LinesComeInnermostFirst) {
  const auto lines = ParseLlvmAnswer(
      R"({"Address":"0x1","Symbol":[{"FunctionName":"_Z5innerv","FileName":"a.h","Line":3},)"
      R"({"FunctionName":"main","FileName":"??","Line":0}]})");
  ASSERT_TRUE(lines.has_value());
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(lines->at(0).function, "inner()");
  EXPECT_EQ(lines->at(0).system_name, "_Z5innerv");
  EXPECT_EQ(lines->at(0).file, "a.h");
  EXPECT_EQ(lines->at(0).line, 3u);
  EXPECT_EQ(lines->at(1).function, "main");
  EXPECT_EQ(lines->at(1).file, "");
}

TEST(LlvmAnswerTest, ErrorsAndEmptySymbolsHaveNoLines) {
  EXPECT_TRUE(ParseLlvmAnswer(R"({"Error":{"Message":"No such file"}})")->empty());
  EXPECT_TRUE(
      ParseLlvmAnswer(R"({"Symbol":[{"FunctionName":"","FileName":"","Line":0}]})")
          ->empty());
}

TEST(LlvmAnswerTest, WhatIsNoJsonObjectIsNoAnswer) {
  for (const char* text : {"", "??", "[1]", "{\"Symbol\":", "main\n"})
    EXPECT_FALSE(ParseLlvmAnswer(text).has_value()) << text;
}

TEST(LlvmAnswerTest, ValuesOfOtherTypesAreLeftOut) {
  const auto lines = ParseLlvmAnswer(
      R"({"Symbol":[{"FunctionName":7,"FileName":"a.cc","Line":"x"},3]})");
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(lines->at(0).function, "");
  EXPECT_EQ(lines->at(0).line, 0u);
}

// A shell script in the place of llvm-symbolizer.
std::string ProgramOf(const std::string& script) {
  std::string program = testing::TempDir() + "symbolizer-XXXXXX";
  ScopedFd(mkstemp(program.data()));
  std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
  EXPECT_EQ(chmod(program.c_str(), 0700), 0);
  return program;
}

TEST(AskLlvmSymbolizerTest, OneThatDoesNotAnswerIsEnded) {
  const std::string program = ProgramOf("exec sleep 1000");
  const std::vector<uint64_t> addresses = {0x1000};
  const auto answers =
      AskLlvmSymbolizer(program, STDIN_FILENO, addresses, /*patience_ns=*/1'000'000);
  ASSERT_FALSE(answers.ok());
  EXPECT_NE(answers.status().message().find("not answered in time"), std::string::npos);
  unlink(program.c_str());
}

class LlvmSymbolizerTest : public testing::TestWithParam<std::string> {};

TEST_P(LlvmSymbolizerTest, AnswersEqualOurOwn) {
  const auto llvm = FindLlvmSymbolizer();
  if (!llvm.ok())
    GTEST_SKIP() << llvm.status().message();
  const TestProgram program(GetParam());
  const SymbolRange draw = FindSymbol(program, "_ZN6shapes4DrawEl");
  std::vector<uint64_t> addresses;
  for (uint64_t address = draw.start; address < draw.end; ++address)
    addresses.push_back(address);
  auto ours = ElfSymbolizer::Open(program.file());
  auto theirs = ElfSymbolizer::Open(program.file());
  theirs.value().UseLlvmSymbolizer(llvm.value(), program.file());
  const auto expected = SymbolizeAddresses(ours.value(), addresses);
  const auto answers = SymbolizeAddresses(theirs.value(), addresses);
  for (size_t i = 0; i < addresses.size(); ++i) {
    ASSERT_EQ(answers[i].size(), expected[i].size()) << std::hex << addresses[i];
    for (size_t j = 0; j < answers[i].size(); ++j) {
      EXPECT_EQ(answers[i][j].function, expected[i][j].function);
      EXPECT_EQ(answers[i][j].file, expected[i][j].file);
      EXPECT_EQ(answers[i][j].line, expected[i][j].line);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs,
                         LlvmSymbolizerTest,
                         testing::Values("shapes", "shapes_dwarf4"));

TEST(LlvmSymbolizerTest, AProgramThatDoesNotAnswerIsAnError) {
  const TestProgram program("shapes");
  const std::vector<uint64_t> addresses(100, 1);
  const auto error_of = [&](const char* other) {
    return AskLlvmSymbolizer(other, program.fd.get(), addresses).status().message();
  };
  EXPECT_EQ(error_of("/bin/true"),
            "cannot use /bin/true: it ended before it had answered");
  EXPECT_EQ(error_of("/bin/cat"), "cannot use /bin/cat: it ended before it had answered");
  const std::string old = ProgramOf("while read line; do echo main; done");
  EXPECT_EQ(error_of(old.c_str()),
            "cannot use " + old +
                ": it does not answer in JSON; version 14 or later is needed");
  EXPECT_EQ(error_of("/nowhere/llvm-symbolizer"),
            "cannot run /nowhere/llvm-symbolizer: No such file or directory");
}

TEST(LlvmSymbolizerTest, WhereThereIsNoneItIsSaidHowToGetIt) {
  const char* const before = getenv("PATH");
  const std::string path = before != nullptr ? before : "";
  setenv("PATH", "/nowhere", 1);
  const Result<std::string> found = FindLlvmSymbolizer();
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().message(),
            "cannot symbolize with llvm-symbolizer: there is none in PATH; install it "
            "(apt-get install llvm) or unset HEAPPROFD_SYMBOLIZER");
}

}  // namespace
}  // namespace heapprofd
