#include "import/perfetto/apply_deobfuscation.h"

#include <gtest/gtest.h>

#include "import/perfetto/test_traces.h"
#include "trace/deobfuscation_messages.h"

namespace heapprofd {
namespace {

// "name:line;name:line" of a stack, outermost first, inlined functions as they are
// called.
std::string FullStack(const TestTrace& test, uint32_t callsite) {
  const ImportedTrace& trace = test.trace;
  std::string text;
  for (const uint32_t frame : test.FramesOf(callsite)) {
    const uint32_t set = trace.frames.symbol_set[frame];
    if (set == kNoId) {
      const StringId name = trace.frames.deobfuscated_name[frame];
      text.append(text.empty() ? "" : ";")
          .append(trace.Text(name != kNoId ? name : trace.frames.name[frame]));
      continue;
    }
    for (size_t row = trace.symbols.EndOf(set); row-- > set;)
      text.append(text.empty() ? "" : ";")
          .append(trace.Text(trace.symbols.name[row]))
          .append(":" + std::to_string(trace.symbols.line[row]));
  }
  return text;
}

std::vector<std::string> FullStacks(const TestTrace& test) {
  std::vector<std::string> stacks;
  for (const uint32_t callsite : test.trace.allocations.callsite)
    stacks.push_back(FullStack(test, callsite));
  return stacks;
}

TEST(ApplyDeobfuscationTest, OutlinesBecomeTheCodeThatTheyWereMadeOf) {
  const std::vector<std::string> stacks = {
      "com.example.Store.read:23;leaf",
      "com.example.Store.read:24;com.example.Log.inlined:98;leaf",
      "com.example.Store.write", "com.example.Outlines.m:1;leaf"};  // nobody calls it
  EXPECT_EQ(FullStacks(*ReadFixture("outlines")), stacks);
  EXPECT_EQ(FullStacks(*ReadFixtureForConversion("outlines")), stacks);
}

TEST(ApplyDeobfuscationTest, CallsitesKeepTheirParentsInFrontAndTheirDepths) {
  const auto test = ReadFixture("outlines");
  const CallsiteTable& callsites = test->trace.callsites;
  for (uint32_t row = 0; row < callsites.row_count(); ++row) {
    const uint32_t parent = callsites.parent[row];
    EXPECT_TRUE(parent == kNoId || parent < row);
    EXPECT_EQ(callsites.depth[row], parent == kNoId ? 0 : callsites.depth[parent] + 1);
  }
}

TEST(ApplyDeobfuscationTest, MappingsInATraceKeepWhatTheyKnowOfOutlines) {
  DeobfuscationMap map;
  ObfuscatedClass& outer = map.classes.emplace_back();
  outer.obfuscated_name = "a";
  outer.deobfuscated_name = "com.A";
  ObfuscatedMember& method = outer.methods.emplace_back();
  method.obfuscated_name = "b";
  method.deobfuscated_name = "com.A.outline";
  method.is_outline = true;
  method.outline_calls.push_back({.outline = "x.y", .lines = {{1, 4}, {2, 5}}});
  const std::vector<std::string> messages = DeobfuscationMessages(map);
  ASSERT_EQ(messages.size(), 1u);
  const ObfuscatedMember read =
      ReadDeobfuscationMessage(messages[0]).classes.at(0).methods.at(0);
  EXPECT_EQ(read.deobfuscated_name, "com.A.outline");
  EXPECT_TRUE(read.is_outline);
  ASSERT_EQ(read.outline_calls.size(), 1u);
  EXPECT_EQ(read.outline_calls[0].outline, "x.y");
  EXPECT_EQ(read.outline_calls[0].lines, method.outline_calls[0].lines);
}

}  // namespace
}  // namespace heapprofd
