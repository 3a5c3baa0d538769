// What is found on this machine; the rules are in mount_list_test.cc.
#include "attach/gate/mount_scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <set>
#include <thread>
#include <vector>

#include "attach/gate/gate_messages.h"
#include "attach/gate/mount_list.h"
#include "attach/remote_process.h"
#include "base/files/late_user.h"
#include "base/files/passed_fds.h"
#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

struct SocketPair {
  SocketPair() {
    std::array<int, 2> fds{-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()), 0);
    ours = ScopedFd(fds[0]);
    theirs = ScopedFd(fds[1]);
  }

  ScopedFd ours;
  ScopedFd theirs;
};

int MountOf(int fd) {
  const std::string info = ReadProcFile("/proc/self/fdinfo/" + std::to_string(fd), 4096);
  return std::stoi(StatusField(info, "mnt_id"));
}

struct Findings {
  std::vector<int> mounts;
  size_t left_out = 0;
};

Findings Found() {
  SocketPair sockets;
  std::thread scan([&] {
    SendLocalMounts(sockets.theirs.get());
    sockets.theirs.reset();
  });
  Findings found;
  for (bool is_end = false; !is_end;) {
    pollfd readable{.fd = sockets.ours.get(), .events = POLLIN, .revents = 0};
    poll(&readable, 1, -1);
    const Packet packet = ReceiveWithFds(sockets.ours.get(), 1);
    is_end = packet.is_end;
    found.left_out += packet.bytes == kMountsLeftOut ? 1u : 0u;
    if (packet.fds.empty())
      continue;
    const int fd = packet.fds[0].get();
    EXPECT_NE(fcntl(fd, F_GETFL) & O_PATH, 0);
    found.mounts.push_back(MountOf(fd));
  }
  scan.join();
  return found;
}

TEST(MountScanTest, FindsLocalFileSystemsOnceAndOpensNone) {
  const Findings found = Found();
  const std::set<int> mounts(found.mounts.begin(), found.mounts.end());
  EXPECT_EQ(mounts.size(), found.mounts.size());

  // Of our own name space.
  const std::vector<Mount> all = ParseMountInfo(ReadProcFile("/proc/self/mountinfo"));
  std::set<std::string> devices;
  for (const Mount& mount : all) {
    if (mounts.contains(mount.id)) {
      EXPECT_NE(mount.type, "proc");
      EXPECT_TRUE(devices.insert(mount.device).second) << mount.point;
    }
  }
}

// A process that hangs in an exec does not hold up the look at those of others.
TEST(MountScanTest, MountsOfAProcessThatHangsAreLeftOutAndThatIsTold) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can make a process of another user";
  constexpr GuardedUser kLateUser{.id = 61001};
  const ProcessOfUser one(kLateUser.id, /*has_own_mounts=*/true);
  const ProcessOfUser other(kLateUser.id, /*has_own_mounts=*/true);
  ASSERT_TRUE(one.is_ready() && other.is_ready());
  const LateUser mallory(kLateUser);
  const Findings found = Found();
  EXPECT_EQ(found.left_out, 1u);
  EXPECT_FALSE(found.mounts.empty());
  EXPECT_TRUE(mallory.Release());
}

TEST(MountScanTest, ComesBackWhenNobodyTakesWhatItFinds) {
  SocketPair sockets;
  sockets.ours.reset();
  SendLocalMounts(sockets.theirs.get());
}

}  // namespace
}  // namespace heapprofd
