#include "trace/apply_deobfuscation.h"

#include <gtest/gtest.h>

#include "trace/deobfuscation_messages.h"
#include "trace/test_traces.h"

namespace heapprofd {
namespace {

// "name:line;name:line" of a stack, outermost first, inlined functions as they are
// called.
std::string FullStack(const ImportedTrace& trace, uint32_t callsite) {
  std::string text;
  for (; callsite != kNoId; callsite = trace.callsites.parent[callsite]) {
    const uint32_t frame = trace.callsites.frame[callsite];
    const uint32_t set = trace.frames.symbol_set[frame];
    if (set == kNoId) {
      const StringId name = trace.frames.deobfuscated_name[frame];
      text = std::string(trace.Text(name != kNoId ? name : trace.frames.name[frame])) +
             (text.empty() ? "" : ";") + text;
      continue;
    }
    for (size_t row = set; row < trace.symbols.EndOf(set); ++row)
      text = std::string(trace.Text(trace.symbols.name[row])) + ":" +
             std::to_string(trace.symbols.line[row]) + (text.empty() ? "" : ";") + text;
  }
  return text;
}

TEST(ApplyDeobfuscationTest, OutlinesBecomeTheCodeThatTheyWereMadeOf) {
  const auto test = ReadFixture("outlines");
  const ImportedTrace& trace = test->trace;
  ASSERT_EQ(trace.allocations.row_count(), 4u);
  const auto stack = [&](uint32_t row) {
    return FullStack(trace, trace.allocations.callsite[row]);
  };
  EXPECT_EQ(stack(0), "com.example.Store.read:23;leaf");
  EXPECT_EQ(stack(1), "com.example.Store.read:24;com.example.Log.inlined:98;leaf");
  EXPECT_EQ(stack(2), "com.example.Store.write");
  EXPECT_EQ(stack(3), "com.example.Outlines.m:1;leaf");  // nobody calls it
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
