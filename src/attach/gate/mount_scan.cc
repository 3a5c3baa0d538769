#include "attach/gate/mount_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "attach/gate/gate_messages.h"
#include "attach/gate/mount_list.h"
#include "attach/remote_process.h"
#include "base/files/guarded_read.h"
#include "base/files/mount_namespace.h"
#include "base/files/open_resolved.h"
#include "base/files/passed_fds.h"
#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

// For a process; on a busy machine a thread may not run at once.
constexpr uint64_t kPatienceNs = 200'000'000;

// No file system is asked when it is opened like this.
ScopedFd OpenPlace(int root, const std::string& path) {
  return OpenResolved(root, path, O_PATH | O_CLOEXEC,
                      RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
}

// 0: unknown.
int MountOf(int fd) {
  const std::string info = ReadProcFile("/proc/self/fdinfo/" + std::to_string(fd), 4096);
  return atoi(StatusField(info, "mnt_id").c_str());  // NOLINT(cert-err34-c)
}

int MountOfPath(const std::string& path) {
  const ScopedFd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  return place.valid() ? MountOf(place.get()) : 0;
}

std::string MountInfoOf(pid_t pid) {
  return ReadProcFile(ProcPath(pid, "mountinfo"));
}

// The kernel does not always tell in time: see guarded_read.h.
GuardedText NamespaceOf(pid_t pid) {
  return ReadProcessLink(pid, "ns/mnt", kPatienceNs);
}

// "yes", or nothing.
GuardedText IsOurs(pid_t pid) {
  const auto ask = [pid] { return std::string(IsOurUsersNamespace(pid) ? "yes" : ""); };
  return AskAbout(pid, ask, kPatienceNs);
}

class Scan {
 public:
  explicit Scan(int socket)
      : socket_(socket),
        our_info_(MountInfoOf(getpid())),
        ours_(ParseMountInfo(our_info_)),
        root_(open("/", O_PATH | O_CLOEXEC)) {
    namespaces_.insert(NamespaceOf(getpid()).text);
  }

  bool SendOurs() { return SendOf(ours_, root_.get()); }

  // The process may change to another namespace meanwhile, from which it cannot come
  // back.
  bool SendOf(pid_t pid) {
    const GuardedText space = NamespaceOf(pid);
    if (space.is_late)
      return MountInfoOf(pid) == our_info_ || SendLeftOut();
    if (space.text.empty() || !namespaces_.insert(space.text).second)
      return true;
    const GuardedText is_ours = IsOurs(pid);
    if (!is_ours.is_late && is_ours.text.empty())
      return true;
    const std::vector<Mount> mounts = ParseMountInfo(MountInfoOf(pid));
    const std::shared_ptr<const ScopedFd> root =
        is_ours.is_late ? nullptr : OpenProcessDirectory(pid, "root", kPatienceNs);
    if (root != nullptr && NamespaceOf(pid).text == space.text)
      return SendOf(mounts, root->get());
    namespaces_.erase(space.text);  // others of it may show them
    return SendLeftOut();
  }

 private:
  bool SendLeftOut() {
    return std::exchange(is_left_out_told_, true) ||
           SendWithFds(socket_, kMountsLeftOut, std::vector<int>()).has_value();
  }

  bool SendOf(const std::vector<Mount>& mounts, int root) {
    for (const Mount& mount : LocalMounts(mounts, ours_, MountOfPath)) {
      if (devices_.contains(mount.device))
        continue;
      const ScopedFd place = OpenPlace(root, mount.point);
      // Another one, which is hidden below or has come meanwhile, has not been looked at.
      if (!place.valid() || MountOf(place.get()) != mount.id)
        continue;
      devices_.insert(mount.device);
      if (!SendWithFds(socket_, "m", {place.get()}))
        return false;
    }
    return true;
  }

  int socket_;
  std::string our_info_;
  std::vector<Mount> ours_;
  ScopedFd root_;
  std::set<std::string> namespaces_;
  std::set<std::string> devices_;
  bool is_left_out_told_ = false;
};

}  // namespace

void SendLocalMounts(int socket) {
  Scan scan(socket);
  bool goes_on = scan.SendOurs();
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* entry =
             goes_on && processes != nullptr ? readdir(processes.get()) : nullptr) {
    const int pid = atoi(entry->d_name);  // NOLINT(cert-err34-c): other names give 0
    goes_on = pid <= 0 || scan.SendOf(pid);
  }
}

}  // namespace heapprofd
