// Opening files that somebody else has chosen: what a recorded program maps, executes or
// names may lie on a file system of its user's own making (FUSE, alone or below an
// overlay), which answers when it likes. An open, a look or even a close of such a file
// can last for ever, and nothing ends that, not SIGKILL.
//
// So root's processes open here only what lies in directories that root alone can change.
// All else is opened by a small process of its own, one for each file, and waited for
// with a bound. What comes back is a file of a local file system, or a copy in memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"

namespace heapprofd {

struct ForeignRequest {
  // The first of these that is there is it. At most four.
  std::vector<std::string> paths;
  // What is known of the file; 0: not this.
  uint64_t inode = 0;
  dev_t device = 0;  // as /proc/PID/maps has it, where it is another than fstat(2) says
  // Directory that is the root for the paths, links in them included; -1: ours.
  int root = -1;
  // Whose file it is: his mounts are looked at, his user waits for himself. 0: nobody's.
  pid_t process = 0;
  // Who waits for himself, when the process is gone.
  std::optional<GuardedUser> user = std::nullopt;
};

struct ForeignFile {
  ScopedFd fd;  // a regular file, to be read; invalid: there is none, or it must not be
  // Of the file itself, also when `fd` is a copy of it.
  dev_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;  // bytes
  int64_t changed_ns = 0;
  uid_t owner = 0;
  bool is_copy = false;  // in memory, of a file that may hang
  // There was no answer in time, or its user has made us wait and is not asked until
  // behind that: later, perhaps.
  bool is_late = false;
};

// `patience_ns`: how long the caller may wait.
ForeignFile OpenForeign(const ForeignRequest& request, uint64_t patience_ns);

// The user who has started a process, who is held to account for its files. For those of
// nobody, and of a process that is gone, a number that is no user's. Of one that is gone
// nobody can tell whose it was, so he is elsewhere.
GuardedUser UserOf(pid_t pid);

// The file at `path`, for those who have nobody else to serve.
ScopedFd OpenForeignPath(const std::string& path);

// Of those who serve others meanwhile, of those on threads of their own, and of those
// who have nobody else to serve.
inline constexpr uint64_t kServingPatienceNs = 100'000'000;
inline constexpr uint64_t kApartPatienceNs = 500'000'000;
inline constexpr uint64_t kOwnPatienceNs = 5'000'000'000;

// Makes the process that makes the others, while this one is small: its memory is theirs
// for as long as they hang.
void PrepareForeignFiles();

}  // namespace heapprofd
