#include "base/files/mount_namespace.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/files/proc_files.h"
#include "base/scoped_fd.h"

namespace heapprofd {

bool IsOurUsersNamespace(pid_t pid) {
  const ScopedFd space(open(ProcPath(pid, "ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  const ScopedFd owner(space.valid() ? ioctl(space.get(), NS_GET_USERNS) : -1);

  struct stat theirs {};

  struct stat ours {};

  return owner.valid() && fstat(owner.get(), &theirs) == 0 &&
         stat("/proc/self/ns/user", &ours) == 0 && theirs.st_ino == ours.st_ino &&
         theirs.st_dev == ours.st_dev;
}

}  // namespace heapprofd
