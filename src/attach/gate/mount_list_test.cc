#include "attach/gate/mount_list.h"

#include <gtest/gtest.h>

#include <map>

namespace heapprofd {
namespace {

constexpr char kRoot[] =
    "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "25 27 0:23 / /tmp rw,nosuid master:3 - tmpfs tmpfs rw\n"
    "40 27 0:40 / /home/a/fuse rw - fuse.sshfs x rw,user_id=1000\n"
    "41 27 0:41 / /net rw - nfs4 server:/net rw\n";

std::vector<std::string> PointsOf(const std::string& text,
                                  const std::map<std::string, int>& layers = {}) {
  const std::vector<Mount> mounts = ParseMountInfo(text);
  std::vector<std::string> points;
  const auto find = [&layers](const std::string& path) {
    const auto found = layers.find(path);
    return found != layers.end() ? found->second : 0;
  };
  for (const Mount& mount : LocalMounts(mounts, mounts, find))
    points.push_back(mount.point);
  return points;
}

using Points = std::vector<std::string>;

std::string Overlay(const std::string& options) {
  return std::string(kRoot) + "50 27 0:50 / /o rw - overlay overlay rw," + options + "\n";
}

TEST(MountListTest, LocalOnesAreWatchedAndWhatOthersServeIsNot) {
  EXPECT_EQ(PointsOf(kRoot), (Points{"/", "/tmp"}));
}

TEST(MountListTest, UnknownTypesAreNotWatched) {
  EXPECT_EQ(PointsOf("1 0 1:1 / / rw - newfs x rw\n"), Points());
}

TEST(MountListTest, NothingBelowWhatOthersServe) {
  EXPECT_EQ(PointsOf(std::string(kRoot) +
                     "60 40 8:1 / /home/a/fuse/disk rw - ext4 /dev/sda1 rw\n"
                     "61 27 8:2 / /home/a/fuse-disk rw - ext4 /dev/sda2 rw\n"
                     "62 27 8:3 / /net rw - ext4 /dev/sda3 rw\n"),
            (Points{"/", "/tmp", "/home/a/fuse-disk"}));
}

TEST(MountListTest, OverlaysOfLocalLayersAreWatched) {
  EXPECT_EQ(PointsOf(Overlay("lowerdir=/l1:/l2,upperdir=/u,workdir=/w,index=off"),
                     {{"/l1", 27}, {"/l2", 25}, {"/u", 27}, {"/w", 27}}),
            (Points{"/", "/tmp", "/o"}));
}

TEST(MountListTest, OverlaysOverAnythingElseAreNot) {
  const std::map<std::string, int> layers = {
      {"/l1", 27}, {"/home/a/fuse/x", 40}, {"/link", 40}, {"/o", 50}};
  for (const char* options :
       {"lowerdir=/l1:/home/a/fuse/x", "lowerdir=/l1,upperdir=/home/a/fuse/x,workdir=/l1",
        "lowerdir=/l1,upperdir=/l1,workdir=/net/w",
        "lowerdir+=/l1,datadir+=/home/a/fuse/x",
        "lowerdir=/link",        // leads there
        "lowerdir=/o",           // itself, for ever
        "lowerdir=/gone",        // cannot be found
        "lowerdir=l/ABC:l/DEF",  // relative
        "lowerdir=/l1:l/DEF", "lowerdir=", "upperdir=/l1,workdir=/l1", "index=off"})
    EXPECT_EQ(PointsOf(Overlay(options), layers), (Points{"/", "/tmp"})) << options;
}

TEST(MountListTest, NamesOfLayersMayHaveEveryCharacter) {
  EXPECT_EQ(OverlayLayers("rw,lowerdir=/a\\134:b\\054c:/d\\040e,x=lowerdir"),
            (Points{"/a:b,c", "/d e"}));
  EXPECT_EQ(OverlayLayers("lowerdir=/a::/b,volatile"), (Points{"/a", "/b"}));
}

TEST(MountListTest, AnOverlayOnAnOverlayIsAsGoodAsThat) {
  const std::string text =
      Overlay("lowerdir=/l1") + "51 27 0:51 / /p rw - overlay overlay rw,lowerdir=/o/x\n";
  EXPECT_EQ(PointsOf(text, {{"/l1", 27}, {"/o/x", 50}}),
            (Points{"/", "/tmp", "/o", "/p"}));
  EXPECT_EQ(PointsOf(text, {{"/l1", 41}, {"/o/x", 50}}), (Points{"/", "/tmp"}));
}

}  // namespace
}  // namespace heapprofd
