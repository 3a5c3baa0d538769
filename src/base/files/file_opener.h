// The process that opens files for others, each file in a child of its own (see
// foreign_file.h), and the words that it is asked and answers with.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"

namespace heapprofd {

inline constexpr size_t kMaxForeignPaths = 4;
inline constexpr size_t kMaxForeignRequest = size_t{20} << 10;  // bytes

// A packet: this, then the paths, each with a zero behind it. With it comes the socket
// for the answer, then the directory that is the root, if there is one.
struct OpenQuestion {
  uint64_t inode;
  uint32_t user;  // who is held to account for it
  uint32_t is_elsewhere;
  pid_t process;
  uint32_t reserved;
};

// With it comes the file; none: it could not be opened.
struct OpenAnswer {
  uint64_t device;
  uint64_t inode;
  uint64_t size;
  int64_t changed_ns;
  uint32_t owner;
  uint32_t is_copy;
  uint32_t is_refused;  // too many are being opened
  uint32_t reserved;
};

// Children that are at it, and for whom. Those that hang are among them.
using OpenerChildren = std::map<pid_t, GuardedUser>;

// Whether there may be one more for him. All of other user name spaces share a quarter.
bool MayOpenMore(const OpenerChildren& children, const GuardedUser& user);

// Opens what is asked for, here and now; `root` and `status` as in OpenQuestion.
ScopedFd OpenAny(const std::vector<std::string>& paths,
                 uint64_t inode,
                 int root,
                 struct stat* status);

OpenAnswer AnswerOf(const struct stat& status);

// Starts it; invalid: it could not be. It ends when all have closed the socket.
ScopedFd StartFileOpener();

}  // namespace heapprofd
