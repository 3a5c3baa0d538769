#include "hotspot/dump_room.h"

#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdlib>

#include "base/files/proc_files.h"

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

// Of control groups: how /proc/PID/cgroup names the memory's (behind a hierarchy's
// number), where they are mounted, and their files.
struct GroupVersion {
  std::string key;
  std::string directory;
  std::string limit;
  std::string used;
};

uint64_t RoomInGroup(const std::string& group, const GroupVersion& version) {
  const uint64_t limit = NumberIn(group + version.limit);
  const uint64_t used = NumberIn(group + version.used);
  return limit == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX
                                                   : limit - std::min(limit, used);
}

uint64_t RoomInGroups(const std::string& groups,
                      const std::string& cgroups,
                      const GroupVersion& version) {
  const size_t at = cgroups.find(version.key);
  if (at == std::string::npos)
    return UINT64_MAX;
  std::string path = cgroups.substr(at + version.key.size());
  path.resize(std::min(path.find('\n'), path.size()));
  const std::string mounted = groups + version.directory;
  uint64_t room = UINT64_MAX;
  while (true) {
    room = std::min(room, RoomInGroup(mounted + path, version));
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos)
      return room;
    path.resize(slash);
  }
}

}  // namespace

uint64_t RoomInGroups(const std::string& groups, const std::string& cgroups) {
  return std::min(RoomInGroups(groups, "\n" + cgroups,
                               {"\n0::", "", "/memory.max", "/memory.current"}),
                  RoomInGroups(groups, cgroups,
                               {":memory:", "/memory", "/memory.limit_in_bytes",
                                "/memory.usage_in_bytes"}));
}

uint64_t RoomInMemory(const std::string& process) {
  constexpr uint64_t kKib = 1024;
  const std::string available =
      StatusField(ReadProcFile("/proc/meminfo", kMaxText), "MemAvailable");
  const uint64_t bytes =
      available.empty() ? UINT64_MAX : strtoull(available.c_str(), nullptr, 10) * kKib;
  return std::min(bytes,
                  RoomInGroups("/sys/fs/cgroup",
                               ReadProcFile("/proc/" + process + "/cgroup", kMaxText))) /
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

uint64_t RoomInTemporary(int directory, pid_t pid) {
  struct statfs about {};

  const uint64_t room = RoomOnDisk(directory);
  const bool is_in_memory = fstatfs(directory, &about) == 0 &&
                            (about.f_type == TMPFS_MAGIC || about.f_type == RAMFS_MAGIC);
  return is_in_memory ? std::min(room, RoomInMemory(std::to_string(pid))) : room;
}

}  // namespace heapprofd
