#include "tables/block_index.h"

#include <gtest/gtest.h>

#include "tables/trace_builder.h"

namespace heapprofd {
namespace {

class BlockIndexTest : public testing::Test {
 protected:
  struct Block {
    uint64_t address;
    uint64_t size;
  };

  void List(uint32_t upid, std::initializer_list<Block> blocks) {
    ImportedDump dump;
    dump.upid = upid;
    builder_.dumps().Begin(dump);
    for (const auto& [address, size] : blocks)
      builder_.dumps().AddLiveBlock(0, address, size);
  }

  ImportedTrace trace_;
  TraceBuilder builder_{&trace_};
};

TEST_F(BlockIndexTest, ABlockIsFoundByAnyAddressInIt) {
  List(1, {{4096, 100}, {1024, 16}, {8192, 0}});  // a file may have them in any order
  const BlockIndex index(trace_);
  EXPECT_EQ(index.Find(1, 1023), kNoId);
  EXPECT_EQ(index.Find(1, 1024), 1u);
  EXPECT_EQ(index.Find(1, 1039), 1u);
  EXPECT_EQ(index.Find(1, 1040), kNoId);
  EXPECT_EQ(index.Find(1, 4195), 0u);
  EXPECT_EQ(index.Find(1, 4196), kNoId);
  EXPECT_EQ(index.Find(1, 8192), kNoId);
  EXPECT_EQ(index.Find(2, 1024), kNoId);
}

TEST_F(BlockIndexTest, TheLastListOfAProcessCounts) {
  List(1, {{1024, 16}, {4096, 16}});
  List(2, {{1024, 16}});
  List(1, {{4096, 32}});
  const BlockIndex index(trace_);
  EXPECT_EQ(index.Find(1, 1024), kNoId);
  EXPECT_EQ(index.Find(1, 4120), 3u);
  EXPECT_EQ(index.Find(2, 1024), 2u);
}

TEST_F(BlockIndexTest, ABlockMayEndWhereNumbersDo) {
  List(1, {{UINT64_MAX - 1, UINT64_MAX}});
  const BlockIndex index(trace_);
  EXPECT_EQ(index.Find(1, UINT64_MAX), 0u);
  EXPECT_EQ(index.Find(1, 0), kNoId);
}

}  // namespace
}  // namespace heapprofd
