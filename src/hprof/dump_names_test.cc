#include "hprof/dump_names.h"

#include <gtest/gtest.h>

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

TEST(JavaNameTest, IsTheLanguages) {
  EXPECT_EQ(JavaName("java/lang/String"), "java.lang.String");
  EXPECT_EQ(JavaName("[B"), "byte[]");
  EXPECT_EQ(JavaName("[[J"), "long[][]");
  EXPECT_EQ(JavaName("[Ljava/lang/String;"), "java.lang.String[]");
  EXPECT_EQ(JavaName("byte[]"), "byte[]");
  EXPECT_EQ(JavaName("B"), "B");
  EXPECT_EQ(JavaName("A$$Lambda$1+0x00007f"), "A$$Lambda$1/0x00007f");
  EXPECT_EQ(JavaName("["), "[]");
  EXPECT_EQ(JavaName(""), "");
}

// The records of names alone, of either size of ids.
class DumpNamesTest : public testing::TestWithParam<uint32_t> {
 protected:
  std::string Id(uint64_t id) const { return ids_.Id(id); }

  static std::string Number(uint32_t number) { return TestDump::Number(number); }

  void Read(uint8_t tag, std::string body) {
    names_.Read(tag, records_.emplace_back(std::move(body)));
  }

  void ReadClass(uint32_t number, uint64_t id, uint64_t name) {
    Read(kLoadClass, Number(number) + Id(id) + Number(0) + Id(name));
  }

  // `line`: its number, or less than 1 for what is none.
  void ReadFrame(uint64_t id, uint64_t method, uint64_t file, int32_t line) {
    Read(kStackFrame, Id(id) + Id(method) + Id(0) + Id(file) + Number(/*class*/ 5) +
                          Number(static_cast<uint32_t>(line)));
  }

  const TestDump ids_{GetParam()};
  std::list<std::string> records_;
  DumpNames names_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(EveryIdSize, DumpNamesTest, testing::Values(4u, 8u));

TEST_P(DumpNamesTest, ClassesHaveTheNamesOfTheirStrings) {
  ReadClass(5, 20, 1);  // before its name
  ReadClass(6, 30, 99);
  Read(kUtf8, Id(1) + "java/util/List");
  names_.Sort();
  EXPECT_EQ(names_.StringOf(1), "java/util/List");
  EXPECT_EQ(names_.StringOf(2), "");
  EXPECT_EQ(names_.ClassName(20), "java.util.List");
  EXPECT_TRUE(names_.HasName(20));
  EXPECT_EQ(names_.ClassName(30), "class 0x1e");
  EXPECT_FALSE(names_.HasName(30));
  EXPECT_FALSE(names_.HasName(31));
}

TEST_P(DumpNamesTest, FramesAreDescribedAsTheMachineDoes) {
  Read(kUtf8, Id(1) + "a/Main");
  Read(kUtf8, Id(2) + "run");
  Read(kUtf8, Id(3) + "Main.java");
  ReadClass(5, 20, 1);
  ReadFrame(100, 2, 3, 12);
  ReadFrame(101, 2, 3, -1);
  ReadFrame(102, 2, 3, -3);
  ReadFrame(103, 2, 0, 12);
  names_.Sort();
  EXPECT_EQ(names_.DescribeFrame(100), "a.Main.run(Main.java:12)");
  EXPECT_EQ(names_.DescribeFrame(101), "a.Main.run(Main.java)");
  EXPECT_EQ(names_.DescribeFrame(102), "a.Main.run(Native Method)");
  EXPECT_EQ(names_.DescribeFrame(103), "a.Main.run(Unknown Source)");
  EXPECT_EQ(names_.DescribeFrame(104), "(unknown)");
}

TEST_P(DumpNamesTest, AStackHasNoMoreFramesThanItsRecord) {
  Read(kStackTrace, Number(1) + Number(7) + Number(2) + Id(100) + Id(101));
  Read(kStackTrace, Number(2) + Number(8) + Number(1000) + Id(102));
  Read(kStackTrace, Number(3) + Number(0) + Number(1) + Id(103));  // of no thread
  names_.Sort();
  EXPECT_EQ(names_.StackOf(7), std::vector<uint64_t>({100, 101}));
  EXPECT_EQ(names_.StackOf(8), std::vector<uint64_t>({102}));
  EXPECT_TRUE(names_.StackOf(0).empty());
  EXPECT_TRUE(names_.StackOf(9).empty());
}

TEST_P(DumpNamesTest, RecordsThatAreTooShortNameNothing) {
  for (const uint8_t tag : {kUtf8, kLoadClass, kStackFrame, kStackTrace}) {
    for (size_t size = 0; size < GetParam(); ++size)
      Read(tag, std::string(size, '\1'));
  }
  names_.Sort();
  EXPECT_EQ(names_.StringOf(0x01010101), "");
  EXPECT_FALSE(names_.HasName(0x01010101));
  EXPECT_EQ(names_.DescribeFrame(0x01010101), "(unknown)");
  EXPECT_TRUE(names_.StackOf(0x01010101).empty());
}

}  // namespace
}  // namespace heapprofd::hprof
