#include "hotspot/dump_room.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/files/proc_files.h"
#include "base/scoped_fd.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxText = 4096;

// The number in a file; UINT64_MAX: none, or "max".
uint64_t NumberIn(const std::string& path) {
  const std::string text = ReadProcFile(path, kMaxText);
  return text.empty() || text[0] < '0' || text[0] > '9'
             ? UINT64_MAX
             : strtoull(text.c_str(), nullptr, 10);
}

uint64_t RoomInGroup(const std::string& group) {
  const uint64_t limit = NumberIn(group + "/memory.max");
  const uint64_t used = NumberIn(group + "/memory.current");
  return limit == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX
                                                   : limit - std::min(limit, used);
}

}  // namespace

uint64_t RoomInGroups(const std::string& groups, const std::string& cgroups) {
  const std::string key = "0::";  // the one hierarchy of version 2
  const size_t at = ("\n" + cgroups).find("\n" + key);
  if (at == std::string::npos)
    return UINT64_MAX;
  std::string path = cgroups.substr(at + key.size());
  path.resize(std::min(path.find('\n'), path.size()));
  uint64_t room = UINT64_MAX;
  while (true) {
    room = std::min(room, RoomInGroup(groups + path));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return room;
    path.resize(slash);
  }
}

uint64_t RoomInMemory() {
  constexpr uint64_t kKib = 1024;
  const std::string available =
      StatusField(ReadProcFile("/proc/meminfo", kMaxText), "MemAvailable");
  const uint64_t bytes =
      available.empty() ? UINT64_MAX : strtoull(available.c_str(), nullptr, 10) * kKib;
  return std::min(bytes, RoomInGroups("/sys/fs/cgroup",
                                      ReadProcFile("/proc/self/cgroup", kMaxText))) /
         2;
}

uint64_t RoomOnDisk(int file) {
  constexpr uint64_t kShareLeft = 20;

  struct statvfs disk {};

  if (fstatvfs(file, &disk) != 0)
    return UINT64_MAX;
  const uint64_t left = disk.f_blocks / kShareLeft;
  return (disk.f_bavail - std::min(disk.f_bavail, left)) * disk.f_frsize;
}

void VolunteerToBeEnded() {
  const ScopedFd fd(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr char kMost[] = "1000";
  (void)write(fd.get(), kMost, sizeof(kMost) - 1);  // a wish
}

}  // namespace heapprofd
