#include "base/files/mount_info.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(MountInfoTest, LinesAreParsed) {
  const std::vector<Mount> mounts = ParseMountInfo(
      "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\n"
      "rubbish\n\n- - -\n1 2 3:4 / relative rw - ext4 x y");
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_EQ(mounts[0].id, 36);
  EXPECT_EQ(mounts[0].device, "98:0");
  EXPECT_EQ(mounts[0].point, "/mnt 2");
  EXPECT_EQ(mounts[0].type, "ext3");
  EXPECT_EQ(mounts[0].options, "rw");
}

}  // namespace
}  // namespace heapprofd
