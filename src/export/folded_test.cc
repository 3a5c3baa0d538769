#include <gtest/gtest.h>

#include "export/formats.h"

namespace heapprofd {
namespace {

// main -> {inlined Parse -> Read, unknown}, and main -> Read once more from elsewhere.
TargetProfile ProfileToFold() {
  TargetProfile profile;
  Mapping mapping;
  mapping.path = "/usr/lib/libx.so";
  profile.mappings.push_back(mapping);
  const SourceLine main{.function = "main", .system_name = {}, .file = {}, .line = 0};
  const SourceLine parse{.function = "Parse", .system_name = {}, .file = {}, .line = 0};
  const SourceLine read{.function = "Re;ad\n", .system_name = {}, .file = {}, .line = 0};
  profile.frames = {Frame{.mapping = 0, .rel_pc = 1, .lines = {parse, main}},
                    Frame{.mapping = 0, .rel_pc = 2, .lines = {read}},
                    Frame{.mapping = 0, .rel_pc = 0x30, .lines = {}},
                    Frame{.mapping = 0, .rel_pc = 4, .lines = {read}}};
  profile.callsites = {{.parent = kNoId, .frame = 0},
                       {.parent = 0, .frame = 1},
                       {.parent = 0, .frame = 2},
                       {.parent = 0, .frame = 3}};
  HeapDump dump;
  dump.callsites[1].allocated = {.bytes = 100, .count = 10};
  dump.callsites[2].allocated = {.bytes = 7, .count = 1};
  dump.callsites[2].freed = {.bytes = 7, .count = 1};
  dump.callsites[3].allocated = {.bytes = 20, .count = 2};
  profile.heaps.push_back(dump);
  return profile;
}

TEST(FoldedTest, StacksRunFromTheOutermostFunctionAndEqualOnesAreOneLine) {
  const TargetProfile profile = ProfileToFold();
  EXPECT_EQ(EncodeFolded({profile, profile.heaps[0], View::kAllocSpace}),
            "main;Parse;Re:ad  120\n"
            "main;Parse;libx.so+0x30 7\n");
}

TEST(FoldedTest, TheAllocationFunctionAtTheEndIsLeftOut) {
  TargetProfile profile = ProfileToFold();
  Frame& leaf = profile.frames[3];
  leaf.lines = {{.function = "malloc", .system_name = {}, .file = {}, .line = 0}};
  leaf.is_allocator = true;
  profile.callsites[3].parent = 1;
  EXPECT_EQ(EncodeFolded({profile, profile.heaps[0], View::kAllocSpace}),
            "main;Parse;Re:ad  120\n"
            "main;Parse;libx.so+0x30 7\n");
}

TEST(FoldedTest, StacksWithoutValueAreLeftOut) {
  const TargetProfile profile = ProfileToFold();
  EXPECT_EQ(EncodeFolded({profile, profile.heaps[0], View::kObjects}),
            "main;Parse;Re:ad  12\n");
}

}  // namespace
}  // namespace heapprofd
