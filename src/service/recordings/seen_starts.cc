#include "service/recordings/seen_starts.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "attach/remote_process.h"
#include "base/clock.h"
#include "engine/running_processes.h"

namespace heapprofd {
namespace {

constexpr uint64_t kLookNs = 50'000'000;
constexpr uint64_t kLookPause = 20;  // a look costs 5 % of a processor at most

// What may be looked into: of this user, and dumpable.
std::vector<pid_t> OwnProcesses() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  while (const dirent* entry =
             directory != nullptr ? readdir(directory.get()) : nullptr) {
    struct stat status {};

    const int pid = atoi(entry->d_name);  // NOLINT(cert-err34-c): other names give 0
    if (pid > 0 && pid != getpid() &&
        fstatat(dirfd(directory.get()), entry->d_name, &status, 0) == 0 &&
        status.st_uid == geteuid())
      pids.push_back(pid);
  }
  return pids;
}

}  // namespace

void SeenStarts::Begin() {
  has_begun_ = true;
  for (const pid_t pid : OwnProcesses())
    known_[pid] = ImageId(pid);
}

void SeenStarts::Look(Session& session, const AttachPolicy& policy) {
  const uint64_t began_ns = MonotonicNs();
  if (!has_begun_ || session.is_stopped() || began_ns < next_look_ns_)
    return;
  std::map<pid_t, std::string> known;
  for (const pid_t pid : OwnProcesses()) {
    std::string image = ImageId(pid);
    const auto before = known_.find(pid);
    const bool is_known = before != known_.end() && before->second == image;
    if (is_known || IsDone(pid, session, policy))
      known[pid] = std::move(image);
  }
  known_ = std::move(known);
  const uint64_t ended_ns = MonotonicNs();
  next_look_ns_ = ended_ns + std::max(kLookNs, kLookPause * (ended_ns - began_ns));
}

// False: it is to be looked at again.
bool SeenStarts::IsDone(pid_t pid, Session& session, const AttachPolicy& policy) const {
  return !IsNamedProcess(session.config().targets, pid) ||
         AttachToNew(session, pid, policy);
}

}  // namespace heapprofd
