#include "engine/session/process_family.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "attach/apart.h"
#include "base/files/guarded_read.h"
#include "base/files/proc_files.h"

namespace heapprofd {
namespace {

// Those of all its threads.
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> all;
  const std::string tasks = ProcPath(pid, "task");
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  while (const dirent* entry =
             directory != nullptr ? readdir(directory.get()) : nullptr) {
    std::istringstream children(ReadProcFile(tasks + "/" + entry->d_name + "/children"));
    for (pid_t child = 0; children >> child;)
      all.push_back(child);
  }
  return all;
}

std::vector<Relative> ReadFamily(pid_t ancestor) {
  constexpr int kStartTime = 22;
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // nobody looks at a child again
  std::vector<Relative> family = {{.pid = ancestor, .start = 0}};
  for (size_t i = 0; i < family.size() && family.size() < kMaxFamily; ++i) {
    for (const pid_t child : ChildrenOf(family[i].pid)) {
      const GuardedText stat = ReadMemoryFile(child, "stat", kMaxStatText, kPatienceNs);
      const std::string start = StatFields(stat.text, kStartTime, kStartTime);
      if (!start.empty())  // or it hangs, and cannot be attached to
        family.push_back({.pid = child, .start = strtoull(start.c_str(), nullptr, 10)});
    }
  }
  family.erase(family.begin());
  family.resize(std::min(family.size(), kMaxFamily));
  return family;
}

}  // namespace

std::vector<Relative> FamilyOf(pid_t pid, const std::function<void()>& between) {
  const auto family = std::make_shared<std::vector<Relative>>();
  const bool is_done = RunApart(
      pid, [family, pid] { *family = ReadFamily(pid); }, between);
  return is_done ? *family : std::vector<Relative>();
}

}  // namespace heapprofd
