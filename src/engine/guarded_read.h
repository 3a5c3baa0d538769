// Files of /proc that show what lies in a process's memory, or how it is mapped: cmdline,
// environ, maps, smaps_rollup. The kernel reads them under the process's lock of its
// mappings, and whoever runs the process can hold that for as long as he likes: by an
// mmap of a file on a FUSE of his own that does not answer. So those of other users are
// read by a thread that can be left behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace heapprofd {

inline constexpr uint64_t kReadPatienceNs = 50'000'000;

// The first `limit` bytes of /proc/`pid`/`file`; empty when it cannot be read, not within
// `patience_ns`, or its user has made us wait in vain a second ago, or still does.
std::string ReadMemoryFile(pid_t pid,
                           const char* file,
                           size_t limit,
                           uint64_t patience_ns = kReadPatienceNs);

// The same of any file, for `user`.
std::string ReadGuarded(const std::string& path,
                        uid_t user,
                        size_t limit,
                        uint64_t patience_ns);

}  // namespace heapprofd
