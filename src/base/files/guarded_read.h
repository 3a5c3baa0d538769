// Files of /proc that show what lies in a process's memory, or how it is mapped: cmdline,
// environ, maps, smaps_rollup. The kernel reads them under the process's lock of its
// mappings. And it opens them, reads "stat", and follows all links (exe, cwd, root, those
// in ns and fd) under the lock of the process's execs. Whoever runs the process can hold
// both for as long as he likes: by an mmap of a file on a FUSE of his own that does not
// answer, or an exec that closes one. So those of other users are read by a thread that
// can be left behind. Others (status, comm, task, children, uid_map) need no lock.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/scoped_fd.h"

namespace heapprofd {

inline constexpr uint64_t kReadPatienceNs = 50'000'000;

// Who is held to account for a read.
struct GuardedUser {
  uid_t id;
  // He is of another user name space: ordinary users have thousands of such ids.
  bool is_elsewhere = false;
};

// How many at a time of one user, of all of other user name spaces, and of all.
struct UserShares {
  size_t of_user;
  size_t elsewhere;
  size_t all;
};

// Whether one more may be for `user` beside those for `others`.
bool HasRoomFor(const GuardedUser& user,
                std::span<const GuardedUser> others,
                const UserShares& shares);

// Whoever has started the process; nullopt: it is gone.
std::optional<GuardedUser> GuardedUserOf(pid_t pid);

struct GuardedText {
  std::string text;
  int error = 0;  // errno of the open
  // Not read in time, or not at all: its user has made us wait in vain a second ago or
  // still does, or as many others do as may.
  bool is_late = false;
};

// The first `limit` bytes of /proc/`pid`/`file`.
GuardedText ReadMemoryFile(pid_t pid,
                           const char* file,
                           size_t limit,
                           uint64_t patience_ns = kReadPatienceNs);

// Where the link /proc/`pid`/`link` leads to.
GuardedText ReadProcessLink(pid_t pid,
                            const char* link,
                            uint64_t patience_ns = kReadPatienceNs);

// What `ask` makes of files of the process, which need one of the locks. It may go on by
// itself, on its thread: all that it uses must be its own.
GuardedText AskAbout(pid_t pid,
                     std::function<std::string()> ask,
                     uint64_t patience_ns = kReadPatienceNs);

// The directory to which it leads (O_PATH); null: it is late, or not for us.
std::shared_ptr<const ScopedFd> OpenProcessDirectory(
    pid_t pid, const char* link, uint64_t patience_ns = kReadPatienceNs);

// As ReadMemoryFile, of any file, for `user`.
GuardedText ReadGuarded(const std::string& path,
                        const GuardedUser& user,
                        size_t limit,
                        uint64_t patience_ns);

// One such file that is read again and again. Opened by the first reading, it stays with
// that image of the process: after an exec it reads empty.
class MemoryFile {
 public:
  MemoryFile(pid_t pid, const char* name);

  // From its beginning. After one that was late the file is opened again.
  GuardedText Read(size_t limit, uint64_t patience_ns = kReadPatienceNs);

  void Close() { fd_.reset(); }

 private:
  pid_t pid_;
  std::string path_;
  std::shared_ptr<const ScopedFd> fd_;  // a thread that was left behind has it, too
};

// How many reads of this process have been late.
uint64_t LateReads();

}  // namespace heapprofd
