#include "engine/root_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <string>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMaxKept = 64;

// By mount and inode: of two name spaces with one root each has its own mounts.
std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<ScopedFd>>& Roots() {
  static std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<ScopedFd>> roots;
  return roots;
}

}  // namespace

std::shared_ptr<ScopedFd> OpenRoot(pid_t pid) {
  ScopedFd fd(open(("/proc/" + std::to_string(pid) + "/root").c_str(),
                   O_PATH | O_DIRECTORY | O_CLOEXEC));

  struct statx status {};

  // It may be on a file system of its user's, who is not asked.
  if (!fd.valid() || statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
                           STATX_INO | STATX_MNT_ID, &status) != 0)
    return nullptr;
  std::erase_if(Roots(), [](const auto& item) { return item.second.expired(); });
  std::weak_ptr<ScopedFd>& known = Roots()[{status.stx_mnt_id, status.stx_ino}];
  std::shared_ptr<ScopedFd> root = known.lock();
  if (root == nullptr)
    known = root = std::make_shared<ScopedFd>(std::move(fd));
  return root;
}

bool MayKeepRoot() {
  return Roots().size() <= kMaxKept;
}

}  // namespace heapprofd
