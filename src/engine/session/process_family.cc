#include "engine/session/process_family.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
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

// nullopt: it has ended, or hangs and cannot be attached to.
std::optional<Relative> Identify(pid_t pid) {
  constexpr int kStartTime = 22;
  constexpr uint64_t kPatienceNs = 1'000'000'000;  // nobody looks at a child again
  const GuardedText stat = ReadMemoryFile(pid, "stat", kMaxStatText, kPatienceNs);
  const std::string start = StatFields(stat.text, kStartTime, kStartTime);
  if (start.empty())
    return std::nullopt;
  return Relative{.pid = pid, .start = strtoull(start.c_str(), nullptr, 10)};
}

std::vector<Relative> ReadFamily(pid_t ancestor) {
  std::vector<Relative> family = {{.pid = ancestor, .start = 0}};
  for (size_t i = 0; i < family.size() && family.size() < kMaxFamily; ++i) {
    for (const pid_t child : ChildrenOf(family[i].pid)) {
      if (const std::optional<Relative> relative = Identify(child))
        family.push_back(*relative);
    }
  }
  family.erase(family.begin());
  family.resize(std::min(family.size(), kMaxFamily));
  return family;
}

std::vector<Relative> ReadProcesses(const std::vector<pid_t>& threads) {
  constexpr size_t kMaxStatus = 16384;
  std::vector<Relative> processes;
  for (const pid_t tid : threads) {
    const std::string pid =
        StatusField(ReadProcFile(ProcPath(tid, "status"), kMaxStatus), "Tgid");
    if (const std::optional<Relative> process =
            Identify(atoi(pid.c_str())))  // NOLINT(cert-err34-c): 0 is nobody
      processes.push_back(*process);
  }
  return processes;
}

}  // namespace

std::vector<Relative> ProcessesOf(const std::vector<pid_t>& threads,
                                  const std::function<void()>& between) {
  if (threads.empty())
    return {};
  const auto processes = std::make_shared<std::vector<Relative>>();
  const bool is_done = RunApart(
      threads.front(), [processes, threads] { *processes = ReadProcesses(threads); },
      between);
  return is_done ? *processes : std::vector<Relative>();
}

std::vector<Relative> FamilyOf(pid_t pid, const std::function<void()>& between) {
  const auto family = std::make_shared<std::vector<Relative>>();
  const bool is_done = RunApart(
      pid, [family, pid] { *family = ReadFamily(pid); }, between);
  return is_done ? *family : std::vector<Relative>();
}

}  // namespace heapprofd
