// Java names of a recording, by a mapping file.
#include "cli/results/deobfuscate_profile.h"

#include <gtest/gtest.h>

#include "cli/results/test_profile.h"

namespace heapprofd {
namespace {

Deobfuscator OneMethod() {
  DeobfuscationMap map;
  map.classes.push_back({.obfuscated_name = "a.b",
                         .deobfuscated_name = "com.example.Store",
                         .fields = {},
                         .methods = {}});
  ObfuscatedMember method;
  method.obfuscated_name = "c";
  method.deobfuscated_name = "com.example.Store.read";
  map.classes[0].methods.push_back(method);
  Deobfuscator deobfuscator;
  deobfuscator.Add(std::move(map));
  return deobfuscator;
}

TEST(DeobfuscateProfileTest, NamesOfPerfMapsAreFoundWithAndWithoutTheirTypes) {
  TestProfile test;
  const CallsiteId bare = test.Add({"a.b.c"}, 10);
  const CallsiteId typed = test.Add({"void a.b.c(int, java.lang.String)"}, 10);
  const CallsiteId other = test.Add({"x.y.z"}, 10);
  const CallsiteId native = test.Add({"operator new(unsigned long)"}, 10);
  DeobfuscateFrames(OneMethod(), CodeOf(test.profile()));
  EXPECT_EQ(test.LineOf(bare).function.str(), "com.example.Store.read");
  EXPECT_EQ(test.LineOf(typed).function.str(), "com.example.Store.read");
  EXPECT_EQ(test.LineOf(other).function.str(), "x.y.z");
  EXPECT_EQ(test.LineOf(native).function.str(), "operator new(unsigned long)");
}

}  // namespace
}  // namespace heapprofd
