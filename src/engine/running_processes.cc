#include "engine/running_processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <optional>

#include "attach/allocators.h"
#include "attach/remote_process.h"
#include "base/clock.h"
#include "base/files/guarded_read.h"
#include "base/scoped_fd.h"
#include "engine/process_info.h"
#include "engine/target_rules.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxStatusSize = 16384;
constexpr uint64_t kServeEveryNs = 5'000'000;

}  // namespace

bool IsNamedProcess(const TargetRules& rules, pid_t pid) {
  TargetRules by_name = rules;
  by_name.all = false;
  by_name.pids.clear();
  const ProcessDescription process = DescribeProcess(pid);
  // A kernel thread and a zombie have neither; of other users' the arguments are seen.
  if (process.executable.empty() && ReadMemoryFile(pid, "cmdline", 1).text.empty())
    return false;
  return IsNamedBy(by_name, process) || IsNameOf(by_name, CommandName(pid));
}

std::vector<pid_t> FindRunning(const TargetRules& rules,
                               const std::function<void()>& between) {
  std::vector<pid_t> pids;
  uint64_t served_ns = MonotonicNs();
  for (const pid_t pid : rules.pids) {
    if (std::find(pids.begin(), pids.end(), pid) == pids.end())
      pids.push_back(pid);
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  while (const dirent* entry = directory != nullptr && !rules.names.empty()
                                   ? readdir(directory.get())
                                   : nullptr) {
    const int pid = atoi(entry->d_name);  // NOLINT(cert-err34-c): other names give 0
    if (pid > 0 && pid != getpid() && IsNamedProcess(rules, pid) &&
        std::find(pids.begin(), pids.end(), pid) == pids.end())
      pids.push_back(pid);
    if (MonotonicNs() - served_ns > kServeEveryNs) {
      between();
      served_ns = MonotonicNs();
    }
  }
  return pids;
}

// The kernel lets us look into processes of a user namespace of ours, whoever they are.
bool IsOthers(pid_t pid) {
  if (geteuid() == 0 || RealUser(pid).value_or(geteuid()) == geteuid())
    return false;
  const int error = ReadProcessLink(pid, "exe").error;
  return error == EACCES || error == EPERM;
}

// Capabilities mean nothing outside of their name space. Root's processes have them; one
// that had none has got them by an exec only if it could have done so anyway.
bool HasRightsOf(pid_t pid, uid_t user, gid_t group) {
  if (geteuid() != 0)
    return true;
  const std::string text = ReadProcFile(ProcPath(pid, "status"), kMaxStatusSize);
  const bool has_capabilities =
      strtoull(StatusField(text, "CapPrm").c_str(), nullptr, 16) != 0;
  const std::optional<FourIds> users = StatusIds(text, "Uid");
  const std::optional<FourIds> groups = StatusIds(text, "Gid");
  return users && groups && AreAll(*users, user) && AreAll(*groups, group) &&
         (user == 0 || !has_capabilities || !IsInOurUserNamespace(pid).value_or(true));
}

Status CheckRightsOf(pid_t pid, uid_t user, gid_t group) {
  if (HasRightsOf(pid, user, group))
    return {};
  const std::string process = "process " + std::to_string(pid);
  const ScopedFd status(open(ProcPath(pid, "status").c_str(), O_RDONLY | O_CLOEXEC));
  if (!status.valid() && (errno == EMFILE || errno == ENFILE))
    return Status::FromErrno("cannot look at the rights of " + process, errno);
  return Status(StatusCode::kUnavailable,
                process + " has ended, or become a program with other rights");
}

std::optional<std::string> EnvironmentVariable(pid_t pid, const std::string& name) {
  constexpr size_t kMaxEnvironment = size_t{1} << 20;
  const std::string key = '\0' + name + '=';
  const std::string text = '\0' + ReadMemoryFile(pid, "environ", kMaxEnvironment).text;
  const size_t at = text.find(key);
  if (at == std::string::npos)
    return std::nullopt;
  return text.substr(at + key.size(), text.find('\0', at + 1) - at - key.size());
}

std::optional<ClientsOf> FindClients(pid_t pid, const std::string& wake_page) {
  const GuardedText text = ReadMemoryFile(pid, "maps", kMaxMapsText);
  if (text.is_late)
    return std::nullopt;
  const std::vector<MapEntry> maps = ParseMaps(text.text);
  ClientsOf clients{.is_preloaded = HasPreloadedClient(maps)};

  struct stat status {};

  if (stat(wake_page.c_str(), &status) != 0)
    return clients;
  const std::string name = wake_page.substr(wake_page.rfind('/'));
  clients.can_be_woken =
      std::any_of(maps.begin(), maps.end(), [&](const MapEntry& entry) {
        return entry.inode == status.st_ino &&
               entry.device ==
                   (uint64_t{major(status.st_dev)} << 20 | minor(status.st_dev)) &&
               entry.path.ends_with(name);
      });
  return clients;
}

}  // namespace heapprofd
