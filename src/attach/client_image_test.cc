#include "attach/client_image.h"

#include <gtest/gtest.h>

#include "attach/prologue.h"

namespace heapprofd {
namespace {

MapEntry Mapping(uint64_t start, uint64_t end, const char* path = "") {
  MapEntry entry;
  entry.start = start;
  entry.end = end;
  entry.path = path;
  return entry;
}

constexpr uint64_t kLibc = 0x7f0000000000;
constexpr uint64_t kSize = uint64_t{8} << 20;

TEST(ClientImageTest, TheHeaderDescribesTheImageThatFollows) {
  const AttachHeader& header = ClientHeader();
  EXPECT_EQ(header.magic, kAttachMagic);
  EXPECT_EQ(ClientImage().size(), header.image_size);
  EXPECT_LT(header.gates, header.code_size);
  EXPECT_LT(header.setup, header.gates);
  EXPECT_GE(header.state, header.code_size);
  EXPECT_LE(header.state + sizeof(AttachState), header.total_size);
  for (const auto& hooks : header.hooks) {
    for (const uint32_t hook : hooks) {
      EXPECT_GT(hook, 0u);
      EXPECT_LT(hook, header.gates);
    }
  }
}

TEST(ClientImageTest, TheNearestGapThatIsLargeEnoughIsTaken) {
  const std::vector<MapEntry> maps = {
      Mapping(kLibc - (uint64_t{64} << 20), kLibc - (uint64_t{63} << 20)),
      Mapping(kLibc - (uint64_t{1} << 20), kLibc),
      Mapping(kLibc + (uint64_t{2} << 20), kLibc + (uint64_t{4} << 20))};
  const std::optional<uint64_t> gap = FindGap(maps, kLibc, kSize);
  ASSERT_TRUE(gap.has_value());
  EXPECT_GE(*gap, maps[0].end);
  EXPECT_LE(*gap + kSize, maps[1].start);
}

TEST(ClientImageTest, AGapOutOfReachOfAJumpIsNone) {
  const std::vector<MapEntry> maps = {
      Mapping(kLibc - (uint64_t{1} << 34), kLibc - (uint64_t{1} << 33)),
      Mapping(kLibc - (uint64_t{1} << 33) + kSize * 2, kLibc + (uint64_t{1} << 33))};
  EXPECT_FALSE(FindGap(maps, kLibc, kSize).has_value());
}

constexpr bool kReachesOverHeaps = kJumpReach > (int64_t{1} << 30);

TEST(ClientImageTest, AProgramAtALowAddressHasItsImageBehindTheRoomOfItsHeap) {
  if (!kReachesOverHeaps)
    GTEST_SKIP() << "no jump reaches that";
  const std::vector<MapEntry> maps = {Mapping(0x400000, 0x500000),
                                      Mapping(0x500000, 0x600000, "[heap]"),
                                      Mapping(kLibc, kLibc + 4096)};
  const std::optional<uint64_t> gap = FindGap(maps, 0x401000, kSize);
  ASSERT_TRUE(gap.has_value());
  EXPECT_GT(*gap, uint64_t{1} << 30);
  EXPECT_TRUE(IsInReach(0x401000, *gap, kSize));
}

TEST(ClientImageTest, RoomIsLeftForTheHeapAndTheStack) {
  if (!kReachesOverHeaps)
    GTEST_SKIP() << "no jump reaches behind it";
  const uint64_t heap = 0x555500000000;
  const std::vector<MapEntry> maps = {
      Mapping(heap, heap + 4096, "[heap]"),
      Mapping(heap + (uint64_t{1} << 30), heap + (uint64_t{1} << 30) + 4096),
      Mapping(heap + (uint64_t{1} << 30) + (uint64_t{64} << 20),
              heap + (uint64_t{1} << 30) + (uint64_t{65} << 20), "[stack]")};
  const std::optional<uint64_t> gap = FindGap(maps, heap, kSize);
  ASSERT_TRUE(gap.has_value());
  EXPECT_GT(*gap, heap + (uint64_t{1} << 29));
  EXPECT_LT(*gap, heap + (uint64_t{1} << 30));
}

}  // namespace
}  // namespace heapprofd
