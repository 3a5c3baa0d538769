// What is in objects, as it is looked up for SQL.
#include "hprof/graph_contents.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/scoped_fd.h"
#include "hprof/graph_tables.h"
#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

constexpr uint64_t kClass = 10;
constexpr uint64_t kOwner = 20;
constexpr uint64_t kBase = 30;
constexpr uint64_t kStringClass = 40;

class GraphContentsTest : public testing::TestWithParam<uint32_t> {
 protected:
  void Open(const TestDump& dump) {
    Add(dump);
    ASSERT_TRUE(contents().Load().ok());
  }

  void Add(const TestDump& dump) {
    bytes_ = dump.bytes();
    Result<DumpFile> file = DumpFile::Read(bytes_, "made");
    ASSERT_TRUE(file.ok());
    const auto kept =
        std::make_shared<const KeptDump>(KeptDump{std::nullopt, std::move(file).value()});
    GraphSource source;
    source.kept = kept;
    source.contents = &contents_;
    std::vector<std::string> notes;
    const Status status = AddGraphs(kept->file, source, &builder_, &notes);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  ObjectContents& contents() { return *contents_.at(0); }

  uint32_t ObjectAt(uint64_t address) {
    const Column<uint64_t>& addresses = trace_.heap_graph.objects.address;
    return static_cast<uint32_t>(std::find(addresses.begin(), addresses.end(), address) -
                                 addresses.begin());
  }

  // "Owner.count=5" of each field.
  std::map<std::string, std::string> FieldsOf(uint64_t address) {
    const uint32_t object = ObjectAt(address);
    std::map<std::string, std::string> found;
    for (uint64_t field = contents().FirstFieldOf(object);
         field < contents().FirstFieldOf(object + 1); ++field) {
      EXPECT_EQ(contents().OwnerOf(field), object);
      const NumberType type = contents().TypeOf(field);
      const std::optional<Number> value = contents().ValueOf(field);
      const std::string text = !value         ? "missing"
                               : IsReal(type) ? std::to_string(value->real)
                                              : std::to_string(value->integer);
      found[std::string(contents().NameOf(field))] =
          std::string(NameOf(type)) + " " + text;
    }
    return found;
  }

  std::string TypeNameOf(uint64_t address) {
    const HeapGraphTables& tables = trace_.heap_graph;
    return std::string(
        trace_.Text(tables.classes[tables.objects.type[ObjectAt(address)]].name));
  }

  std::string bytes_;
  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  GraphContentsList contents_;
};

INSTANTIATE_TEST_SUITE_P(IdBytes, GraphContentsTest, testing::Values(4, 8));

using Fields = std::map<std::string, std::string>;

// Of each type of number a field, the last one in the superclass, behind a reference.
TestDump Numbers(uint32_t id_bytes) {
  TestDump dump(id_bytes);
  for (uint64_t type = kBoolean; type <= kLong; ++type)
    dump.String(type, "f" + std::to_string(type));
  dump.String(100, "next").String(101, "value").String(102, "coder");
  dump.Class(kClass, "java/lang/Class").Class(kOwner, "Owner").Class(kBase, "Base");
  dump.Class(kStringClass, "java/lang/String");
  return dump.Segment(dump.ClassDump(kClass, 0, {}) +
                      dump.ClassDump(kOwner, kBase,
                                     {{kBoolean, kBoolean},
                                      {kChar, kChar},
                                      {kFloat, kFloat},
                                      {kDouble, kDouble},
                                      {100, kObject},
                                      {kByte, kByte},
                                      {kShort, kShort},
                                      {kInt, kInt}}) +
                      dump.ClassDump(kBase, 0, {{kLong, kLong}}) +
                      dump.ClassDump(kStringClass, 0, {{101, kObject}, {102, kByte}}));
}

// A few bytes of a hostile file each.
TEST_P(GraphContentsTest, FieldsThatAreInheritedWithoutEndAreRefused) {
  constexpr uint64_t kSubclasses = 70;
  TestDump dump(GetParam());
  dump.String(1, "flag").Class(kClass, "java/lang/Class").Class(kBase, "Base");
  std::string body =
      dump.ClassDump(kClass, 0, {}) +
      dump.ClassDump(kBase, 0, std::vector<TestDump::Field>(60'000, {1, kBoolean}));
  for (uint64_t i = 0; i < kSubclasses; ++i) {
    dump.Class(100 + i, "Of");
    body += dump.ClassDump(100 + i, kBase, {}) +
            dump.Instance(5000 + i, 100 + i, std::string(60'000, '\0'));
  }
  Add(dump.Segment(body));
  EXPECT_EQ(contents().Load().message(),
            "cannot read the values of fields: the classes have more than 4194304 with "
            "those that they inherit; heap_profile hprof object shows those of one "
            "object");
}

TEST_P(GraphContentsTest, NumbersOfAllTypes) {
  TestDump dump = Numbers(GetParam());
  const std::string values =
      std::string("\x01", 1) + std::string("\xff\xfe", 2) +
      std::string("\x3f\xc0\0\0", 4) + std::string("\xc0\x04\0\0\0\0\0\0", 8) +
      dump.Id(2000) + std::string("\x80", 1) + std::string("\xff\xfd", 2) +
      std::string("\x80\0\0\0", 4) + std::string("\x7f\xff\xff\xff\xff\xff\xff\xff", 8);
  dump.Segment(dump.Instance(2008, kOwner, values) +
               dump.Instance(2000, kBase, "12345678") +
               dump.Instance(2016, kOwner, values.substr(0, 3)))
      .End();
  Open(dump);
  EXPECT_EQ(FieldsOf(2008), (Fields{{"Owner.f4", "boolean 1"},
                                    {"Owner.f5", "char 65534"},
                                    {"Owner.f6", "float 1.500000"},
                                    {"Owner.f7", "double -2.500000"},
                                    {"Owner.f8", "byte -128"},
                                    {"Owner.f9", "short -3"},
                                    {"Owner.f10", "int -2147483648"},
                                    {"Base.f11", "long 9223372036854775807"}}));
  EXPECT_EQ(FieldsOf(2000),
            (Fields{{"Base.f11", "long " + std::to_string(0x3132333435363738)}}));
  EXPECT_EQ(FieldsOf(2016)["Owner.f5"], "char 65534");
  EXPECT_EQ(FieldsOf(2016)["Owner.f6"], "float missing");
  EXPECT_EQ(contents().field_count(), 17u);
}

TEST_P(GraphContentsTest, StaticNumbersAreThoseOfTheObjectOfTheClass) {
  TestDump dump(GetParam());
  dump.String(1, "LIMIT").String(2, "LIST").String(3, "count");
  dump.Class(kClass, "java/lang/Class").Class(kOwner, "Owner");
  const std::string statics = std::string("\0\2", 2) + dump.Id(2) +
                              static_cast<char>(kObject) + dump.Id(kOwner) + dump.Id(1) +
                              static_cast<char>(kInt) + TestDump::Number(77);
  std::string owner = dump.ClassDump(kOwner, 0, {{3, kInt}});
  owner.replace(owner.size() - 2 - 2 - GetParam() - 1, 2, statics);
  dump.Segment(dump.ClassDump(kClass, 0, {}) + owner +
               dump.Instance(2000, kOwner, TestDump::Number(5)))
      .End();
  Open(dump);
  EXPECT_EQ(FieldsOf(kOwner), (Fields{{"LIMIT", "int 77"}}));
  EXPECT_EQ(FieldsOf(2000), (Fields{{"Owner.count", "int 5"}}));
  EXPECT_EQ(TypeNameOf(kOwner), "java.lang.Class<Owner>");
  EXPECT_EQ(TypeNameOf(kClass), "java.lang.Class<java.lang.Class>");
  EXPECT_EQ(TypeNameOf(2000), "Owner");
}

TEST_P(GraphContentsTest, TextsAndArrays) {
  TestDump dump = Numbers(GetParam());
  const std::string ints = dump.Root(kPrimitiveArrayDump, 2040, TestDump::Number(0)) +
                           TestDump::Number(2) + static_cast<char>(kInt) +
                           TestDump::Number(3) + TestDump::Number(1);
  dump.Segment(dump.Instance(2000, kStringClass, dump.Id(2024) + '\0') +
               dump.Instance(2008, kStringClass, dump.Id(9999) + '\0') +
               dump.Instance(2016, kStringClass, "") + dump.Bytes(2024, "caf\xe9") +
               dump.NoData(2032, 50) + ints)
      .End();
  Open(dump);
  EXPECT_EQ(contents().TextOf(ObjectAt(2000)), "caf\xc3\xa9");
  EXPECT_EQ(contents().TextOf(ObjectAt(2008)), std::nullopt) << "no such array";
  EXPECT_EQ(contents().TextOf(ObjectAt(2016)), std::nullopt) << "no fields";
  EXPECT_EQ(contents().TextOf(ObjectAt(2024)), std::nullopt) << "no string";
  const std::optional<NumberArray> array = contents().ArrayOf(ObjectAt(2040));
  ASSERT_TRUE(array);
  EXPECT_EQ(array->type, NumberType::kInt);
  EXPECT_EQ(array->length, 2u);
  EXPECT_EQ(contents().DataOf(ObjectAt(2040)), std::string("\3\0\0\0\1\0\0\0", 8));
  const std::optional<NumberArray> no_data = contents().ArrayOf(ObjectAt(2032));
  ASSERT_TRUE(no_data);
  EXPECT_FALSE(no_data->has_data);
  EXPECT_EQ(no_data->length, 50u);
  EXPECT_EQ(contents().DataOf(ObjectAt(2032)), "");
  EXPECT_FALSE(contents().ArrayOf(ObjectAt(2000)));
}

// More than one step between the numbers that are kept, objects without fields among
// them, and not in the order of the file.
TEST_P(GraphContentsTest, FieldsOfManyObjectsAreFoundFromBothSides) {
  constexpr uint64_t kObjects = 1000;
  TestDump dump = Numbers(GetParam());
  std::string objects;
  for (uint64_t i = 0; i < kObjects; ++i) {
    const uint64_t id = 100'000 + 8 * (i * 7 % kObjects);
    objects += i % 3 == 0
                   ? dump.Bytes(id, "no field")
                   : dump.Instance(id, kBase,
                                   std::string(4, '\0') +
                                       TestDump::Number(static_cast<uint32_t>(id)));
  }
  dump.Segment(objects).End();
  Open(dump);
  uint64_t with_field = 0;
  for (uint64_t i = 0; i < kObjects; ++i) {
    const uint64_t id = 100'000 + 8 * (i * 7 % kObjects);
    const Fields fields = FieldsOf(id);
    EXPECT_EQ(fields.size(), i % 3 == 0 ? 0u : 1u);
    for (const auto& [name, value] : fields)
      EXPECT_EQ(value, "long " + std::to_string(id));
    with_field += fields.size();
  }
  EXPECT_EQ(contents().field_count(), with_field);
}

TEST_P(GraphContentsTest, ClassesWhoseNamesHaveNoRoomAreCounted) {
  constexpr uint64_t kField = 2000;
  const std::vector<TestDump::Field> fields(40'000, {kField, kByte});
  TestDump dump(GetParam());
  dump.String(kField, "field");
  for (const uint64_t id : {kOwner, kBase})  // names are cut behind the first KiB
    dump.Class(id, std::string(2000, 'n'));
  dump.Segment(dump.ClassDump(kOwner, kBase, fields) + dump.ClassDump(kBase, 0, fields) +
               dump.Instance(100, kOwner, std::string(2 * fields.size(), '\0')))
      .End();
  Open(dump);
  EXPECT_GT(contents().NameOf(0).size(), 1000u);
  EXPECT_EQ(contents().unnamed_classes(), 0u);
  for (uint64_t field = 0; field < contents().field_count(); ++field)
    contents().NameOf(field);
  EXPECT_EQ(contents().NameOf(contents().field_count() - 1), "field");
  EXPECT_EQ(contents().unnamed_classes(), 1u);
}

TEST(KeptDumpTest, AFileThatIsShortenedWhileItIsAskedIsAnError) {
  std::string path = testing::TempDir() + "graph_contents_test.XXXXXX";
  const ScopedFd fd(mkstemp(path.data()));
  std::string objects;
  for (uint64_t i = 0; i < 100; ++i)
    objects += TestDump(4).Bytes(2000 + 8 * i, std::string(4000, 'x'));
  const std::string bytes = TestDump(4).Segment(objects).End().bytes();
  ASSERT_EQ(write(fd.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  std::vector<std::string> notes;
  GraphContentsList list;
  ASSERT_TRUE(ImportDumps(path, &builder, &list, &notes).ok());
  ObjectContents& contents = *list.at(0);
  ASSERT_TRUE(contents.Load().ok());
  EXPECT_EQ(contents.DataOf(99), std::string(4000, 'x'));
  EXPECT_TRUE(contents.Check().ok());
  ASSERT_EQ(ftruncate(fd.get(), 8192), 0);
  EXPECT_NE(contents.DataOf(99), std::string(4000, 'x'));
  EXPECT_NE(contents.Check().message().find("it was shortened while it was read"),
            std::string::npos);
  unlink(path.c_str());
}

}  // namespace
}  // namespace heapprofd::hprof
