#include "hprof/convert.h"

#include <gtest/gtest.h>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

Result<std::string> Converted(const std::string& bytes, bool app_heap_only = false) {
  std::string output;
  Result<ConvertReport> report =
      Convert(bytes, "test", {app_heap_only}, [&output](std::string_view part) {
        output += part;
        return Status();
      });
  if (!report.ok())
    return std::move(report).status();
  return output;
}

class ConvertEveryIdSize : public testing::TestWithParam<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(ConvertTest, ConvertEveryIdSize, testing::Values(4u, 8u));

TEST_P(ConvertEveryIdSize, AndroidsRootsAndHeapsBecomeOrdinary) {
  TestDump dump(GetParam(), '3');
  TestDump want(GetParam(), '2');
  const std::string numbers = TestDump::Number(1) + TestDump::Number(2);
  const std::string kept = dump.Root(kRootJniLocal, 1, numbers) + dump.Bytes(9, "kept");
  dump.String(1, "name").Segment(dump.Heap('A') + dump.Root(kRootVmInternal, 5) + kept +
                                 dump.Root(kRootJniMonitor, 6, numbers) +
                                 dump.Root(kUnreachableObject, 7) + dump.NoData(8, 77));
  want.String(1, "name").Segment(dump.Root(kRootUnknown, 5) + kept +
                                 dump.Root(kRootUnknown, 6) + dump.Root(kRootUnknown, 7) +
                                 dump.Root(kPrimitiveArrayDump, 8, TestDump::Number(7)) +
                                 TestDump::Number(0) + static_cast<char>(kInt));
  const Result<std::string> made = Converted(dump.End().bytes());
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value(), want.End().bytes());
}

TEST_P(ConvertEveryIdSize, OnlyTheAppsHeapIsKeptOnRequest) {
  TestDump dump(GetParam(), '3');
  TestDump want(GetParam(), '2');
  const std::string object = dump.Instance(1, 2, "abcd");
  const std::string klass = dump.ClassDump(20, 0, {});
  dump.Segment(object + dump.Heap('Z') + object + klass + dump.NoData(8, 77) +
               dump.Heap('A') + dump.Bytes(3, "x") + dump.Heap('I') + object);
  dump.Segment(object);  // a heap ends with its record
  want.Segment(object + klass + dump.Bytes(3, "x")).Segment(object);
  const Result<std::string> made = Converted(dump.End().bytes(), true);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made.value(), want.End().bytes());
}

TEST_P(ConvertEveryIdSize, CutAtEveryByteIsRefused) {
  const std::string whole = Lists(GetParam(), '3').bytes();
  EXPECT_TRUE(Converted(whole).ok());
  const size_t heap = whole.find(std::string("\x1c\0\0\0\0\0", 6));
  for (size_t size = 0; size < whole.size(); ++size) {
    const Result<std::string> made = Converted(whole.substr(0, size));
    if (size > heap || size < kHeaderBytes) {
      EXPECT_FALSE(made.ok()) << "cut at " << size;
    }
  }
}

TEST(ConvertTest, OrdinaryDumpsAreCopied) {
  const std::string bytes = Lists(8).bytes();
  const Result<std::string> made = Converted(bytes);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value(), bytes);
}

TEST(ConvertTest, WhatIsUnknownIsNotGuessed) {
  TestDump dump(4, '3');
  dump.Segment(dump.Root(0x88, 7)).End();
  EXPECT_NE(Converted(dump.bytes()).status().message().find("there is no kind 0x88"),
            std::string::npos);
}

}  // namespace
}  // namespace heapprofd::hprof
