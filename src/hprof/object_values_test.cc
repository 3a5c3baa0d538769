#include "hprof/object_values.h"

#include <gtest/gtest.h>

#include "hprof/strings/string_texts.h"
#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

class ObjectValuesTest : public testing::TestWithParam<uint32_t> {
 protected:
  // "name type text" of each value, and behind them how many there are.
  std::string Values(uint64_t id, size_t most = 100) {
    const Result<DumpFile> file = DumpFile::Read(dump_.bytes(), "test");
    EXPECT_TRUE(file.ok());
    const HeapDump& dump = file.value().dumps().at(0);
    const HeapCensus census = TakeCensus(file.value(), dump);
    const std::optional<ObjectValues> values =
        ValuesOf(file.value(), dump, census.classes, id, most);
    if (!values)
      return "none";
    std::string text;
    for (const ObjectValue& value : values->values)
      text += value.name + " " + TypeName(value.type) + " " +
              (value.type == kObject ? HexOf(value.reference) : value.text) + "\n";
    return text + std::to_string(values->count) +
           (values->has_data ? "" : " without data");
  }

  TestDump dump_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(IdBytes, ObjectValuesTest, testing::Values(4, 8));

TEST_P(ObjectValuesTest, FieldsHaveTheirValuesTheOwnClassesFirst) {
  dump_.String(1, "a").String(2, "b").String(3, "c").String(4, "d").String(5, "e");
  dump_.String(6, "f").String(7, "g").String(8, "h").String(9, "i");
  dump_.Class(20, "Top").Class(30, "Low");
  const std::string values = dump_.Id(0x77) + std::string("\x01\xff\x00\x41\xff\xfe", 6) +
                             TestDump::Number(static_cast<uint32_t>(-5)) +
                             TestDump::Number(0xffffffff) + TestDump::Number(0xfffffffe) +
                             TestDump::Number(0x3fc00000) +                       // 1.5f
                             TestDump::Number(0xc0040000) + TestDump::Number(0);  // -2.5
  dump_.Segment(dump_.ClassDump(20, 0, {{8, kFloat}, {9, kDouble}}) +
                dump_.ClassDump(30, 20,
                                {{1, kObject},
                                 {2, kBoolean},
                                 {3, kByte},
                                 {4, kChar},
                                 {5, kShort},
                                 {6, kInt},
                                 {7, kLong}}) +
                dump_.Instance(100, 30, values) + dump_.Instance(100, 30, values));
  dump_.End();
  EXPECT_EQ(Values(100),
            "Low.a object 0x77\nLow.b boolean true\nLow.c byte -1\nLow.d char 65 "
            "'A'\nLow.e short -2\n"
            "Low.f int -5\nLow.g long -2\nTop.h float 1.5\nTop.i double -2.5\n9");
  EXPECT_EQ(Values(100, 1), "Low.a object 0x77\n9");
  EXPECT_EQ(Values(101), "none");
}

TEST_P(ObjectValuesTest, ClassesHaveStaticsAndArraysElements) {
  dump_.String(1, "LIST").Class(20, "Node").Class(40, "[LNode;");
  dump_.Segment(dump_.ClassDump(20, 0, {}, {{1, 400}}) + dump_.ClassDump(40, 0, {}) +
                dump_.Objects(400, 40, {0x10, 0, 0x30}) + dump_.Bytes(500, "AB") +
                dump_.NoData(600, 7));
  dump_.End();
  EXPECT_EQ(Values(20), "Node.LIST object 0x190\n1");
  EXPECT_EQ(Values(400), "[0] object 0x10\n[1] object 0x0\n[2] object 0x30\n3");
  EXPECT_EQ(Values(400, 2), "[0] object 0x10\n[1] object 0x0\n3");
  EXPECT_EQ(Values(500), "[0] byte 65\n[1] byte 66\n2");
  EXPECT_EQ(Values(600), "7 without data");
}

TEST_P(ObjectValuesTest, AnInstanceThatIsCutHasTheFieldsThatAreWhole) {
  dump_.String(1, "a").String(2, "b").Class(20, "Node");
  dump_.Segment(dump_.ClassDump(20, 0, {{1, kByte}, {2, kLong}}) +
                dump_.Instance(100, 20, "A1234567"));
  dump_.End();
  EXPECT_EQ(Values(100), "Node.a byte 65\n1");
}

TEST_P(ObjectValuesTest, TextsAreThoseOfStringsThatAreWanted) {
  dump_.String(1, "value").Class(30, "java/lang/String");
  dump_.Segment(
      dump_.ClassDump(30, 0, {{1, kObject}}) + dump_.Instance(100, 30, dump_.Id(300)) +
      dump_.Instance(101, 30, dump_.Id(300)) + dump_.Instance(102, 30, dump_.Id(999)) +
      dump_.Instance(103, 30, dump_.Id(300)) + dump_.Bytes(300, "a text"));
  dump_.End();
  const Result<DumpFile> file = DumpFile::Read(dump_.bytes(), "test");
  ASSERT_TRUE(file.ok());
  const HeapDump& dump = file.value().dumps().at(0);
  const std::map<uint64_t, std::string> texts =
      FindTexts(file.value(), dump, TakeCensus(file.value(), dump).classes,
                {100, 101, 102, 0, 555}, 4);
  EXPECT_EQ(texts, (std::map<uint64_t, std::string>{{100, "a te"}, {101, "a te"}}));
}

}  // namespace
}  // namespace heapprofd::hprof
