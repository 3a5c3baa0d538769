// What a hostile file can make of little.
#include "hprof/graph_tables.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "hprof/test_dump.h"

namespace heapprofd::hprof {
namespace {

class GraphTablesTest : public testing::Test {
 protected:
  void Add(const TestDump& dump) {
    const Result<DumpFile> file = DumpFile::Read(dump.bytes(), "made");
    ASSERT_TRUE(file.ok());
    const Status status = AddGraphs(file.value(), {}, &builder_, &notes_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  size_t TextBytes() const {
    size_t bytes = 0;
    for (StringId id = 0; id < trace_.strings.size(); ++id)
      bytes += trace_.strings.Get(id).size();
    return bytes;
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
  std::vector<std::string> notes_;
};

// Classes with long names, each with all of the static fields, that refer to
// `object`.
TestDump ManyNames(uint64_t class_count,
                   size_t name_bytes,
                   uint64_t field_count,
                   uint64_t object) {
  constexpr uint64_t kFirstField = 1'000'000;
  TestDump dump(4);
  std::vector<std::pair<uint64_t, uint64_t>> statics;
  for (uint64_t i = 0; i < field_count; ++i) {
    dump.String(kFirstField + i, "field" + std::to_string(i));
    statics.emplace_back(kFirstField + i, object);
  }
  std::string classes;
  for (uint64_t id = 1; id <= class_count; ++id) {
    dump.Class(id, std::to_string(id) + std::string(name_bytes, 'n'));
    classes += dump.ClassDump(id, 0, {}, statics);
  }
  return dump.Segment(classes + dump.Bytes(500'000, "held")).End();
}

TEST_F(GraphTablesTest, FieldsWithoutAReferenceNeedNoNames) {
  Add(ManyNames(1, 1 << 20, 20'000, 0));
  EXPECT_LT(TextBytes(), size_t{1} << 20);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(GraphTablesTest, LongNamesAreCut) {
  Add(ManyNames(1, 1 << 20, 20'000, 500'000));
  EXPECT_EQ(trace_.heap_graph.references.row_count(), 20'000u);
  EXPECT_LT(TextBytes(), size_t{32} << 20);
}

TEST_F(GraphTablesTest, NamesOfFieldsAreBoundedTogether) {
  constexpr uint64_t kClasses = 5;
  constexpr uint64_t kFields = 20'000;
  Add(ManyNames(kClasses, 1000, kFields, 500'000));
  EXPECT_LT(TextBytes(), size_t{66} << 20);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_NE(notes_[0].find("without their class"), std::string::npos);
  const StringId last = trace_.heap_graph.references.field_name[kClasses * kFields - 1];
  EXPECT_EQ(trace_.strings.Get(last), "field" + std::to_string(kFields - 1));
}

TEST_F(GraphTablesTest, AGraphWhoseFileIsNotKeptHasNoContents) {
  Add(ManyNames(1, 10, 1, 0));
  ASSERT_EQ(trace_.heap_graph.graphs.size(), 1u);
  EXPECT_FALSE(trace_.heap_graph.graphs[0].has_contents);
}

TEST_F(GraphTablesTest, ATimeThatIsNoneIsNotShown) {
  TestDump made = Lists(4);
  std::string bytes = made.bytes();
  bytes.replace(kVersionBytes + 4, 8, 8, '\xff');
  const Result<DumpFile> file = DumpFile::Read(bytes, "made");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(AddGraphs(file.value(), {}, &builder_, &notes_).ok());
  EXPECT_EQ(trace_.heap_graph.graphs[0].ts, 0);
}

}  // namespace
}  // namespace heapprofd::hprof
