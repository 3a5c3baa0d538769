#include "query/flame_tree.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

class FlameTreeTest : public testing::Test {
 protected:
  FlameTreeTest() : builder_(&trace_) {}

  // Callsite of "main;f;g"; every name is a frame of one mapping.
  uint32_t Callsite(const std::vector<std::string>& stack) {
    uint32_t callsite = kNoId;
    for (const std::string& name : stack)
      callsite = builder_.InternCallsite(
          callsite, builder_.InternFrame(builder_.Intern(name), kNoId, 0));
    return callsite;
  }

  FlameTree Build(ValuesByCallsite values, const FlameOptions& options = {}) {
    const CancelFlag cancelled = false;
    Result<FlameTree> tree =
        BuildFlameTree(trace_, std::move(values), options, cancelled);
    EXPECT_TRUE(tree.ok());
    return std::move(tree).value();
  }

  static std::string PathOf(const FlameTree& tree, uint32_t row) {
    const FlameNode& node = tree.nodes[row];
    return (node.parent == kNoId ? "" : PathOf(tree, node.parent) + ";") +
           std::string(tree.NameOf(row));
  }

  ImportedTrace trace_;
  TraceBuilder builder_;
};

TEST_F(FlameTreeTest, CallersWithoutMemoryOfTheirOwnAreThereAndOthersAreNot) {
  const uint32_t leaf = Callsite({"main", "f", "g"});
  Callsite({"main", "unused"});
  ValuesByCallsite values(trace_.callsites.row_count());
  values.At(leaf).size = 7;
  const FlameTree tree = Build(std::move(values));
  ASSERT_EQ(tree.nodes.size(), 3u);
  EXPECT_EQ(PathOf(tree, 2), "main;f;g");
  EXPECT_EQ(tree.CumulativeOf(0).size, 7);
  EXPECT_EQ(tree.SelfOf(0).size, 0);
}

TEST_F(FlameTreeTest, NamesAreDemangledOnlyWhenAskedFor) {
  Callsite({"_ZN3foo3barEv"});
  const auto values = [] {
    ValuesByCallsite made(1);
    made.At(0).size = 1;
    return made;
  };
  EXPECT_EQ(Build(values()).NameOf(0), "foo::bar()");
  EXPECT_EQ(Build(values(), {NameStyle::kAsRecorded, Merging::kByName}).NameOf(0),
            "_ZN3foo3barEv");
}

TEST_F(FlameTreeTest, SourceLinesOnWhichMergedFunctionsDisagreeAreLeftOut) {
  const StringId name = builder_.Intern("f");
  for (const uint32_t line : {3u, 4u}) {
    const uint32_t frame = builder_.InternFrame(name, kNoId, line);
    trace_.frames.symbol_set[frame] =
        builder_.AddSymbol(kNoId, name, builder_.Intern("f.c"), line);
    builder_.InternCallsite(kNoId, frame);
  }
  ValuesByCallsite values(2);
  values.At(0).size = 1;
  values.At(1).size = 1;
  const FlameTree tree = Build(std::move(values));
  ASSERT_EQ(tree.nodes.size(), 1u);
  EXPECT_EQ(tree.FunctionOf(0).line, 0u);
  EXPECT_EQ(trace_.Text(tree.FunctionOf(0).source_file), "f.c");
}

TEST_F(FlameTreeTest, SumsStopAtTheEndOfTheRange) {
  const uint32_t f = Callsite({"main", "f"});
  const uint32_t g = Callsite({"main", "g"});
  ValuesByCallsite values(trace_.callsites.row_count());
  values.At(f).size = INT64_MAX;
  values.At(g).size = INT64_MAX;
  EXPECT_EQ(Build(std::move(values)).CumulativeOf(0).size, INT64_MAX);
}

TEST_F(FlameTreeTest, RecursionIsFoundAtAnyDistanceAndOnlyAbove) {
  Callsite({"a", "b", "a", "c"});
  Callsite({"a", "d"});
  Callsite({"b", "a", "b"});
  ValuesByCallsite values(trace_.callsites.row_count());
  for (size_t callsite = 0; callsite < values.size(); ++callsite)
    values.At(callsite) = FlameValues{1, 1, 1, 1};
  const FlameTree tree = Build(std::move(values));
  std::map<std::string, uint32_t> kinds = {{"a", 0}, {"b", 1}, {"c", kNoId}, {"d", 2}};
  std::vector<uint32_t> kind_of;
  for (uint32_t row = 0; row < tree.nodes.size(); ++row)
    kind_of.push_back(kinds[std::string(tree.NameOf(row))]);
  const std::vector<bool> has_same = HasSameAbove(tree, kind_of);
  std::set<std::string> found;
  for (uint32_t row = 0; row < tree.nodes.size(); ++row) {
    if (has_same[row])
      found.insert(PathOf(tree, row));
  }
  EXPECT_EQ(found, (std::set<std::string>{"a;b;a", "b;a;b"}));
}

TEST_F(FlameTreeTest, ACancelledTreeIsAnError) {
  Callsite({"main"});
  const CancelFlag cancelled = true;
  const Result<FlameTree> tree =
      BuildFlameTree(trace_, ValuesByCallsite(1), {}, cancelled);
  ASSERT_FALSE(tree.ok());
  EXPECT_EQ(tree.status().code(), StatusCode::kUnavailable);
}

// Against the plainest way to say it: a map from path to sum over all stacks below.
TEST_F(FlameTreeTest, RandomTreesGiveTheSumsOfTheirStacks) {
  std::mt19937 random(301);
  std::map<std::string, int64_t> want;
  std::vector<std::pair<uint32_t, int64_t>> samples;
  for (int i = 0; i < 500; ++i) {
    std::vector<std::string> stack;
    std::string path;
    const auto value = static_cast<int64_t>(random() % 1000 + 1);
    std::set<std::string> paths;
    for (size_t depth = random() % 6 + 1; depth > 0; --depth) {
      stack.push_back(std::string(1, static_cast<char>('a' + random() % 3)));
      path += (path.empty() ? "" : ";") + stack.back();
      paths.insert(path);
    }
    for (const std::string& prefix : paths)
      want[prefix] += value;
    samples.emplace_back(Callsite(stack), value);
  }
  ValuesByCallsite values(trace_.callsites.row_count());
  for (const auto& [callsite, value] : samples)
    values.At(callsite).size += value;
  const FlameTree tree = Build(std::move(values));
  std::map<std::string, int64_t> got;
  for (uint32_t row = 0; row < tree.nodes.size(); ++row)
    got[PathOf(tree, row)] = tree.CumulativeOf(row).size;
  EXPECT_EQ(got, want);
}

TEST_F(FlameTreeTest, DepthsAndVariancesOfRandomTreesAreThoseOfTheirStacks) {
  std::mt19937 random(302);
  std::map<std::string, double> want;
  std::vector<std::pair<uint32_t, double>> samples;
  for (int i = 0; i < 300; ++i) {
    std::vector<std::string> stack;
    std::string path;
    const auto variance = static_cast<double>(random() % 1000);
    for (size_t depth = random() % 6 + 1; depth > 0; --depth) {
      stack.push_back(std::string(1, static_cast<char>('a' + random() % 3)));
      path += (path.empty() ? "" : ";") + stack.back();
      want[path] += variance;
    }
    samples.emplace_back(Callsite(stack), variance);
  }
  ValuesByCallsite values(trace_.callsites.row_count());
  for (const auto& [callsite, variance] : samples) {
    values.At(callsite).size = 1;
    values.AddVariance(callsite, variance);
  }
  const FlameTree tree = Build(std::move(values));
  std::map<std::string, double> got;
  for (uint32_t row = 0; row < tree.nodes.size(); ++row) {
    const std::string path = PathOf(tree, row);
    got[path] = tree.VarianceOf(row);
    EXPECT_EQ(tree.depths[row], path.size() / 2);
  }
  EXPECT_EQ(got, want);
}

TEST_F(FlameTreeTest, AVarianceThatIsZeroIsKnownAndOneThatNobodyAddedIsNot) {
  const uint32_t leaf = Callsite({"main", "f"});
  ValuesByCallsite values(trace_.callsites.row_count());
  values.At(leaf).size = 7;
  EXPECT_FALSE(values.has_variances());
  values.AddVariance(leaf, 0);
  EXPECT_TRUE(values.has_variances());
  const FlameTree tree = Build(std::move(values));
  ASSERT_FALSE(tree.variances.empty());
  EXPECT_EQ(tree.VarianceOf(0), 0);
}

TEST_F(FlameTreeTest, InlinedFunctionsAreNodesFromTheOutermostToTheInnermost) {
  const uint32_t frame = builder_.InternFrame(builder_.Intern("outer"), kNoId, 1);
  const StringId file = builder_.Intern("f.c");
  const uint32_t set = builder_.AddSymbol(kNoId, builder_.Intern("inner"), file, 3);
  builder_.AddSymbol(set, builder_.Intern("outer"), file, 7);
  trace_.frames.symbol_set[frame] = set;
  builder_.InternCallsite(builder_.InternCallsite(kNoId, frame), frame);
  ValuesByCallsite values(2);
  values.At(1).size = 1;
  const FlameTree tree = Build(std::move(values));
  ASSERT_EQ(tree.nodes.size(), 4u);
  EXPECT_EQ(PathOf(tree, 3), "outer;inner;outer;inner");
  EXPECT_EQ(tree.FunctionOf(2).line, 7u);
  EXPECT_EQ(tree.nodes[3].function, tree.nodes[1].function);
}

TEST(FunctionTableTest, RowsAreThoseOfAMapFromEverythingThatTellsFunctionsApart) {
  std::mt19937 random(303);
  FunctionTable table;
  std::map<std::array<uint32_t, 4>, uint32_t> want;
  for (int i = 0; i < 5000; ++i) {
    const std::array<uint32_t, 4> key = {
        static_cast<uint32_t>(random() % 8), static_cast<uint32_t>(random() % 5),
        static_cast<uint32_t>(random() % 6), static_cast<uint32_t>(random() % 7)};
    const uint32_t row = table.Intern(
        {.name = key[0], .mapping_name = key[1], .source_file = key[2], .line = key[3]});
    const auto next = static_cast<uint32_t>(want.size());
    EXPECT_EQ(row, want.try_emplace(key, next).first->second);
    EXPECT_EQ(table[row].line, key[3]);
  }
}

}  // namespace
}  // namespace heapprofd
