#include "hprof/find_objects.h"

#include <gtest/gtest.h>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

// Addresses and texts of what is found, "0x64 'text'"; or the error.
std::string Find(const std::string& bytes,
                 const std::string& classes,
                 const std::vector<std::string>& conditions = {}) {
  const Result<DumpFile> file = DumpFile::Read(bytes, "test");
  EXPECT_TRUE(file.ok());
  const HeapDump& dump = file.value().dumps().at(0);
  ObjectQuery query{classes, {}};
  for (const std::string& condition : conditions)
    query.conditions.push_back(ParseCondition(condition).value());
  std::string text;
  uint64_t sum = 0;
  const Result<FoundObjects> found =
      FindObjects(file.value(), dump, TakeCensus(file.value(), dump), query,
                  [&](const FoundObject& object) {
                    text += (text.empty() ? "" : " ") + HexOf(object.id);
                    for (const StringBytes& string : object.texts)
                      text += " '" + TextOf(string, 4) + "'";
                    sum += object.bytes;
                  });
  if (!found.ok())
    return found.status().message();
  EXPECT_EQ(found.value().bytes, sum);
  return text + (found.value().is_whole ? "" : " and more") +
         (found.value().has_all_fields ? "" : ", fields left out");
}

class FindObjectsTest : public testing::TestWithParam<uint32_t> {
 protected:
  TestDump dump_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(IdBytes, FindObjectsTest, testing::Values(4, 8));

TEST_P(FindObjectsTest, ClassesAreNamedOrGuessed) {
  const std::string dump = Lists(GetParam()).bytes();
  EXPECT_EQ(Find(dump, "Node"), "0x64 0x6e 0xc8 0xd2");
  EXPECT_EQ(Find(dump, "Node[]"), "0x190");
  EXPECT_EQ(Find(dump, "N*"), "0x64 0x6e 0xc8 0xd2 0x190");
  EXPECT_EQ(Find(dump, "byte[]"), "0x1f4 0x258");
  EXPECT_EQ(Find(dump, "java.lang.Class"), "0xa 0x14 0x1f 0x1e 0x28");
  EXPECT_EQ(Find(dump, "N?de").substr(0, 28), "cannot find objects of N?de:");
}

TEST_P(FindObjectsTest, ReferencesAreComparedByAddress) {
  const std::string dump = Lists(GetParam()).bytes();
  EXPECT_EQ(Find(dump, "Node", {"next=null"}), "0x6e 0xd2");
  EXPECT_EQ(Find(dump, "Node", {"next=null", "payload=0x1f4"}), "0x6e");
  EXPECT_EQ(Find(dump, "*", {"Node.payload=0x270f"}), "0xd2");
  EXPECT_EQ(Find(dump, "*", {"java.lang.ref.Reference.referent=0xd2"}), "0x12c");
  EXPECT_EQ(Find(dump, "Node", {"ext=null"}).substr(0, 31),
            "cannot find objects by ext: no ");
  EXPECT_EQ(Find(dump, "*", {"ext=null"}).substr(0, 28), "cannot find objects by ext: ");
  EXPECT_EQ(Find(dump, "Node[]", {"next=null"}), "");
}

TEST_P(FindObjectsTest, NumbersAreComparedAsTheirTypeSays) {
  dump_.String(1, "a").String(2, "b").String(3, "c").String(4, "d").String(5, "e");
  dump_.Class(20, "Top");
  const auto instance = [&](uint64_t id, std::string_view flags, uint32_t number) {
    return dump_.Instance(id, 20,
                          std::string(flags) + TestDump::Number(number) +
                              TestDump::Number(0x3dcccccd) +  // 0.1f
                              TestDump::Number(0xc0040000) +
                              TestDump::Number(0));  // -2.5
  };
  dump_.Segment(
      dump_.ClassDump(20, 0,
                      {{1, kBoolean}, {2, kChar}, {3, kInt}, {4, kFloat}, {5, kDouble}}) +
      instance(100, {"\x01\x00\x41", 3}, 7) +
      instance(101, {"\x00\x00\x42", 3}, 0xffffffff));
  dump_.End();
  const std::string& dump = dump_.bytes();
  EXPECT_EQ(Find(dump, "Top", {"a=true"}), "0x64");
  EXPECT_EQ(Find(dump, "Top", {"a=false"}), "0x65");
  EXPECT_EQ(Find(dump, "Top", {"b=A"}), "0x64");
  EXPECT_EQ(Find(dump, "Top", {"b=66"}), "0x65");
  EXPECT_EQ(Find(dump, "Top", {"c=-1"}), "0x65");
  EXPECT_EQ(Find(dump, "Top", {"d=0.1", "e=-2.5"}), "0x64 0x65");
  EXPECT_EQ(Find(dump, "Top", {"c=8"}), "");
  EXPECT_EQ(Find(dump, "Top", {"c~7"}), "");
}

TEST_P(FindObjectsTest, FieldsBehindTheEndOfAnObjectAreNone) {
  dump_.String(1, "a").String(2, "b").Class(20, "Top");
  dump_.Segment(dump_.ClassDump(20, 0, {{1, kInt}, {2, kByte}, {1, kByte}}) +
                dump_.Instance(100, 20, TestDump::Number(1) + "\x07\x08") +
                dump_.Instance(101, 20, TestDump::Number(8) + "\x07") +
                dump_.Instance(102, 20, "\x08\x08") + dump_.Instance(103, 20, ""));
  dump_.End();
  EXPECT_EQ(Find(dump_.bytes(), "Top", {"a=8"}), "0x64 0x65");
}

// Comparing all of them would take minutes.
TEST_P(FindObjectsTest, OfFieldsOfOneNameOnlySomeAreCompared) {
  dump_.String(1, "a").Class(20, "Top");
  std::string body =
      dump_.ClassDump(20, 0, std::vector<TestDump::Field>(65'535, {1, kByte}));
  body += dump_.Instance(100, 20, std::string(63, '\0') + "\x07" + "\x08");
  std::string large(65'535, '\0');
  large[64] = 7;
  for (uint64_t id = 200; id < 300; ++id)
    body += dump_.Instance(id, 20, large);
  for (uint64_t id = 1000; id < 1'000'000; ++id)
    body += dump_.Instance(id, 20, "");
  dump_.Segment(body).End();
  EXPECT_EQ(Find(dump_.bytes(), "Top", {"a=7"}), "0x64, fields left out");
}

class FindTextsTest : public FindObjectsTest {
 protected:
  void SetUp() override {
    dump_.String(1, "value").String(2, "coder").String(3, "name");
    dump_.Class(20, "Owner").Class(30, "java/lang/String");
    const auto string = [&](uint64_t id, uint64_t array, char coder) {
      return dump_.Instance(id, 30, dump_.Id(array) + coder);
    };
    using namespace std::string_literals;
    dump_.Segment(dump_.ClassDump(20, 0, {{3, kObject}}) +
                  dump_.ClassDump(30, 0, {{1, kObject}, {2, kByte}}) +
                  string(100, 300, 0) + string(101, 301, 1) + string(102, 302, 0) +
                  string(103, 303, 1) + dump_.Instance(200, 20, dump_.Id(100)) +
                  dump_.Instance(201, 20, dump_.Id(0)) + dump_.Bytes(300, "caf\xe9 one") +
                  dump_.Bytes(301, "\xe9\0 \0\xac\x20\x3d\xd8\0\xde"s) +  // "é €😀"
                  dump_.Bytes(302, "") + dump_.Bytes(303, "\0a\0b"s));
    dump_.End();
  }
};

INSTANTIATE_TEST_SUITE_P(IdBytes, FindTextsTest, testing::Values(4, 8));

TEST_P(FindTextsTest, StringsAreFoundByTheirText) {
  const std::string& dump = dump_.bytes();
  EXPECT_EQ(Find(dump, "java.lang.String", {"value=café one"}), "0x64 'café'");
  EXPECT_EQ(Find(dump, "java.lang.String", {"value~é"}), "0x64 'café' 0x65 'é €�'");
  EXPECT_EQ(Find(dump, "java.lang.String", {"value~é", "value~€😀"}),
            "0x65 'é €�' 'é €�'");
  EXPECT_EQ(Find(dump, "java.lang.String", {"value=café"}), "");
  EXPECT_EQ(Find(dump, "java.lang.String", {"value="}), "0x66 ''");
  EXPECT_EQ(Find(dump, "*", {"value~one", "coder=0"}), "0x64 'café'");
}

TEST_P(FindTextsTest, APartBeginsWhereACharacterDoes) {
  EXPECT_EQ(Find(dump_.bytes(), "java.lang.String", {"value~a"}), "0x64 'café'");
}

TEST_P(FindTextsTest, OwnersAreFoundByTheTextsTheyReferTo) {
  const std::string& dump = dump_.bytes();
  EXPECT_EQ(Find(dump, "Owner", {"name~one"}), "0xc8 'café'");
  EXPECT_EQ(Find(dump, "Owner", {"name=null"}), "0xc9");
  EXPECT_EQ(Find(dump, "Owner", {"name~x"}), "");
}

TEST_P(FindTextsTest, SharedPartsAreNotComparedForEver) {
  TestDump dump(GetParam());
  dump.String(1, "value").String(2, "offset").String(3, "count");
  dump.Class(30, "java/lang/String");
  std::string body = dump.ClassDump(30, 0, {{1, kObject}, {2, kInt}, {3, kInt}});
  constexpr uint32_t kLength = 100'000;
  for (uint64_t id = 1000; id < 3000; ++id)
    body += dump.Instance(
        id, 30, dump.Id(300) + TestDump::Number(1) + TestDump::Number(kLength - 1));
  dump.Segment(body + dump.Bytes(300, "b" + std::string(kLength - 1, 'a'))).End();
  const std::string found = Find(dump.bytes(), "java.lang.String", {"value~b"});
  EXPECT_EQ(found, " and more");
}

TEST(ParseConditionTest, WhatIsNoneIsRefused) {
  for (const char* text : {"", "name", "=x", "~x"})
    EXPECT_EQ(ParseCondition(text).status().message(),
              std::string("cannot find objects by ") + text +
                  ": it is neither FIELD=VALUE nor FIELD~TEXT");
  EXPECT_EQ(ParseCondition("a~b=c").value().field, "a");
  EXPECT_EQ(ParseCondition("a=b~c").value().value, "b~c");
}

}  // namespace
}  // namespace heapprofd::hprof
