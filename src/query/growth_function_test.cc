// What heap_profile_growth costs and when it gives up; its figures are in
// tests/queries/growth.
#include "query/growth_function.h"

#include <gtest/gtest.h>

#include <array>

#include "query/tree_tables.h"
#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

class GrowthFunctionTest : public testing::Test {
 protected:
  GrowthFunctionTest() : builder_(&trace_) {
    ImportedDump dump;
    dump.upid = builder_.processes().ProcessOf(1);
    builder_.dumps().Begin(dump);
  }

  // One of `name` that holds something; `rel_pc` tells it apart.
  uint32_t AddCallsite(const char* name, uint64_t rel_pc) {
    const uint32_t frame = builder_.InternFrame(builder_.Intern(name), kNoId, rel_pc);
    builder_.dumps().AddAllocation(builder_.InternCallsite(kNoId, frame), 1, 10);
    return frame;
  }

  MadeTable Make() {
    const std::array<Cell, 2> cells = {Cell::Integer(0), Cell::Null()};
    return GrowthFunction(trace_, cancelled_).make(cells);
  }

  ImportedTrace trace_;
  TraceBuilder builder_;
  CancelFlag cancelled_ = false;
};

// A name may be a megabyte, and a function have a hundred thousand callsites.
TEST_F(GrowthFunctionTest, TheNameOfManyCallsitesIsThereOnce) {
  AddCallsite("_ZN3foo3barEv", 1);
  AddCallsite("_ZN3foo3barEv", 2);
  const uint32_t frame = AddCallsite("other", 3);
  trace_.frames.symbol_set[frame] =
      builder_.AddSymbol(kNoId, builder_.Intern("_ZN3foo3barEv"), kEmptyString, 0);
  const MadeTable made = Make();
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Table& table = *made.value();
  ASSERT_EQ(table.row_count, 3u);
  const TableColumn& names = table.columns[2];
  ASSERT_EQ(names.name, "name");
  EXPECT_EQ(names.At(0).text, "foo::bar()");
  EXPECT_EQ(names.At(1).text.data(), names.At(0).text.data());
  EXPECT_EQ(names.At(2).text.data(), names.At(0).text.data());
}

TEST_F(GrowthFunctionTest, WithoutANameItIsNull) {
  AddCallsite("", 1);
  const MadeTable made = Make();
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made.value()->columns[2].At(0).is_null());
}

TEST_F(GrowthFunctionTest, ACancelledOneIsAnError) {
  AddCallsite("f", 1);
  cancelled_ = true;
  const MadeTable made = Make();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace heapprofd
