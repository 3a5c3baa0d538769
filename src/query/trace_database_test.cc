#include "query/trace_database.h"

#include <gtest/gtest.h>

#include "import/perfetto/test_traces.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

// Cells of all rows, one a line, those of a row joined by blanks.
class TextSink : public ResultSink {
 public:
  Status BeginResult(const Statement& /*statement*/) override { return {}; }

  Status AddRow(const Statement& statement) override {
    for (size_t column = 0; column < statement.column_count(); ++column) {
      const Cell cell = statement.At(column);
      text += column == 0 ? "" : " ";
      text += cell.kind == CellKind::kInteger ? std::to_string(cell.integer)
                                              : std::string(cell.text);
    }
    text += "\n";
    return {};
  }

  Status EndResult() override { return {}; }

  std::string text;
};

// A database over a trace of which stacks and samples are not yet decoded.
class UndecodedTraceTest : public testing::Test {
 protected:
  void Open(const std::string& fixture) {
    auto trace = std::make_unique<ImportedTrace>();
    auto builder = std::make_unique<TraceBuilder>(trace.get());
    builder->DeferDecoding();
    const std::string bytes = FixtureBytes(fixture);
    MemorySource source(bytes);
    ASSERT_TRUE(ReadTrace(source, fixture, *builder).ok());
    Result<std::unique_ptr<TraceDatabase>> database = TraceDatabase::Create(
        std::move(trace), {std::move(builder), [this](const std::string& warning) {
                             warnings_.push_back(warning);
                           }});
    ASSERT_TRUE(database.ok()) << database.status().message();
    database_ = std::move(database).value();
  }

  bool IsDecoded() const { return database_->trace().callsites.row_count() > 0; }

  std::string Ask(const std::string& sql) {
    TextSink sink;
    const Status status = database_->Run(sql, sink);
    return status.ok() ? sink.text : status.message();
  }

  std::vector<std::string> warnings_;
  std::unique_ptr<TraceDatabase> database_;
};

TEST_F(UndecodedTraceTest, QueriesThatNeedNoStacksLeaveThemUndecoded) {
  Open("two_dumps");
  EXPECT_EQ(Ask("select count(*) from stack_profile_frame"), "3\n");
  EXPECT_EQ(Ask("select ts_end from heap_profile"), "2000\n3000\n");
  EXPECT_EQ(Ask("select trace_end()"), "3000\n");
  EXPECT_FALSE(IsDecoded());
}

TEST_F(UndecodedTraceTest, TheFirstQueryThatNeedsStacksDecodesThem) {
  for (const char* const table :
       {"heap_profile_allocation", "stack_profile_callsite", "stats", "heap_dump",
        "heap_profile_label", "flamegraph(0)", "android_heap_profile_summary_tree",
        "_android_heap_profile_intervals"}) {
    Open("two_dumps");
    EXPECT_NE(Ask(std::string("select count(*) from ") + table), "");
    EXPECT_TRUE(IsDecoded()) << table;
  }
  EXPECT_EQ(Ask("select sum(size), count(*) from heap_profile_allocation"), "1500 5\n");
}

TEST_F(UndecodedTraceTest, WhatIsWrongInsideOfStacksIsToldWhenTheyAreDecoded) {
  Open("missing_and_duplicate_ids");
  const std::string query =
      "select value from stats where name = 'stackprofile_invalid_callstack_id'";
  EXPECT_TRUE(warnings_.empty());
  EXPECT_NE(Ask(query), "0\n");
  ASSERT_FALSE(warnings_.empty());
  const size_t count = warnings_.size();
  Ask(query);
  EXPECT_EQ(warnings_.size(), count);
}

TEST_F(UndecodedTraceTest, ACancelledQueryLeavesTheRestForTheNext) {
  Open("two_dumps");
  database_->cancel_flag() = true;
  EXPECT_EQ(Ask("select count(*) from heap_profile_allocation"),
            "cannot finish the query: it was cancelled");
  database_->cancel_flag() = false;
  EXPECT_EQ(Ask("select count(*) from heap_profile_allocation"), "5\n");
}

TEST_F(UndecodedTraceTest, WhatAQueryAsksForInVainIsNamedWithWhatThereIs) {
  Open("two_dumps");
  const std::string cases[][2] = {
      {"select * from flamegraph(99)",
       "cannot find dump 99: the trace has 2 dumps; SELECT id, ts, upid, heap_name FROM"},
      {"select * from flamegraph('x')", "cannot find dump (no number): the trace has"},
      {"select * from flamegraph(0, 'weight')",
       "cannot find view weight: the views are "},
      {"select * from callers('nobody')",
       "cannot find callers of nobody: no stack with memory has a function of this name"},
      {"select * from experimental_flamegraph(1, 2, 3)",
       "cannot build a flamegraph: no profile type is given; use "},
      {"create table t(a)",
       "the trace is read-only, SELECT and CREATE VIEW are possible"},
      {"include perfetto module no.such",
       "cannot include module no.such: it is not part of this program; these are: "},
  };
  for (const auto& [sql, words] : cases)
    EXPECT_NE(Ask(sql).find(words), std::string::npos) << Ask(sql);
}

// Contents that have run out of room for names.
class UnnamedContents : public ObjectContents {
 public:
  Status Load() override { return {}; }

  Status Check() const override { return {}; }

  uint64_t field_count() const override { return 0; }

  uint64_t FirstFieldOf(uint32_t /*object*/) const override { return 0; }

  uint32_t OwnerOf(uint64_t /*field*/) const override { return 0; }

  std::string_view NameOf(uint64_t /*field*/) const override { return {}; }

  uint64_t unnamed_classes() const override { return unnamed; }

  NumberType TypeOf(uint64_t /*field*/) const override { return NumberType::kByte; }

  std::optional<Number> ValueOf(uint64_t /*field*/) const override { return {}; }

  std::optional<std::string> TextOf(uint32_t /*object*/) const override { return {}; }

  std::optional<NumberArray> ArrayOf(uint32_t /*object*/) const override { return {}; }

  std::string DataOf(uint32_t /*object*/) const override { return {}; }

  uint64_t unnamed = 0;
};

TEST(ContentsTest, ClassesThatAreMissingInNamesAreTold) {
  const auto contents = std::make_shared<UnnamedContents>();
  std::vector<std::string> warnings;
  Result<std::unique_ptr<TraceDatabase>> database = TraceDatabase::Create(
      std::make_unique<ImportedTrace>(),
      {nullptr,
       [&warnings](const std::string& warning) { warnings.push_back(warning); },
       {contents}});
  ASSERT_TRUE(database.ok());
  TextSink sink;
  ASSERT_TRUE(database.value()->Run("select 1", sink).ok());
  EXPECT_TRUE(warnings.empty());
  contents->unnamed = 1;
  ASSERT_TRUE(database.value()->Run("select 1", sink).ok());
  EXPECT_TRUE(warnings.at(0).starts_with("1 class is missing ")) << warnings[0];
  warnings.clear();
  contents->unnamed = 2;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(database.value()->Run("select 1", sink).ok());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            "2 classes are missing in the names of their fields, which would take more "
            "than 64 MiB");
}

}  // namespace
}  // namespace heapprofd
