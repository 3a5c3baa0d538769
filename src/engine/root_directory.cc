#include "engine/root_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <utility>

#include "base/files/guarded_read.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxKept = 64;

// By mount and inode: of two name spaces with one root each has its own mounts.
std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const ScopedFd>>& Roots() {
  static std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<const ScopedFd>> roots;
  return roots;
}

}  // namespace

std::shared_ptr<const ScopedFd> OpenRoot(pid_t pid) {
  std::shared_ptr<const ScopedFd> opened = OpenProcessDirectory(pid, "root");

  struct statx status {};

  // It may be on a file system of its user's, who is not asked.
  if (opened == nullptr || statx(opened->get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                                 STATX_INO | STATX_MNT_ID, &status) != 0)
    return nullptr;
  std::erase_if(Roots(), [](const auto& item) { return item.second.expired(); });
  std::weak_ptr<const ScopedFd>& known = Roots()[{status.stx_mnt_id, status.stx_ino}];
  if (std::shared_ptr<const ScopedFd> root = known.lock())
    return root;
  known = opened;
  return opened;
}

bool MayKeepRoot() {
  return Roots().size() <= kMaxKept;
}

}  // namespace heapprofd
