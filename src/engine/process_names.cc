#include "engine/process_names.h"

#include <dirent.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "attach/remote_process.h"
#include "engine/process_info.h"

namespace heapprofd {
namespace {

std::string FileName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool NameMatcher::MatchesFile(const std::string& file_name) const {
  return std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
    return fnmatch(name.c_str(), file_name.c_str(), 0) == 0;
  });
}

bool NameMatcher::MatchesProcess(pid_t pid) const {
  const ProcessDescription process = DescribeProcess(pid);
  if (process.executable.empty())
    return false;  // a kernel thread or a zombie
  std::string command = ReadProcFile(ProcPath(pid, "comm"), 64);
  if (!command.empty() && command.back() == '\n')
    command.pop_back();
  return MatchesFile(FileName(process.executable)) ||
         MatchesFile(FileName(process.cmdline.front())) || MatchesFile(command);
}

std::vector<pid_t> FindProcessesByName(const NameMatcher& matcher) {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  if (directory == nullptr)
    return pids;
  while (const dirent* entry = readdir(directory.get())) {
    const int pid = atoi(entry->d_name);  // NOLINT(cert-err34-c): other names give 0
    if (pid > 0 && pid != getpid() && matcher.MatchesProcess(pid))
      pids.push_back(pid);
  }
  return pids;
}

}  // namespace heapprofd
