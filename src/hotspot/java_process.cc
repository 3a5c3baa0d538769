#include "hotspot/java_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "attach/remote_process.h"
#include "base/files/guarded_read.h"
#include "base/files/own_rights.h"
#include "base/files/proc_files.h"
#include "base/text.h"

namespace heapprofd {
namespace {

constexpr size_t kStatusSize = 16384;
constexpr size_t kMaxCommandLine = size_t{256} << 10;
constexpr size_t kMaxMaps = size_t{64} << 20;
constexpr uint64_t kPatienceNs = 2'000'000'000;
constexpr size_t kEffective = 1;  // of FourIds

std::string StatusOf(pid_t pid) {
  return ReadProcFile(ProcPath(pid, "status"), kStatusSize);
}

bool HasEnded(const ScopedFd& handle) {
  pollfd polled{.fd = handle.get(), .events = POLLIN, .revents = 0};
  return poll(&polled, 1, 0) != 0;
}

// A mapping of a file of this name, whole or up to a version.
bool MapsFile(const std::string& maps, const std::string& name) {
  return maps.find("/" + name) != std::string::npos;
}

// Whether an argument is `name`, or a file of this name.
bool HasArgument(const std::string& line, const std::string& name) {
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find('\0', begin), line.size());
    const std::string word = line.substr(begin, end - begin);
    if (word == name || FileName(word) == name)
      return true;
    begin = end + 1;
  }
  return false;
}

// It does not handle SIGQUIT.
Status CannotBeAsked(pid_t pid, const std::string& what) {
  const std::string line =
      ReadMemoryFile(pid, "cmdline", kMaxCommandLine, kPatienceNs).text;
  if (HasArgument(line, "-Xrs") || HasArgument(line, "-XX:+ReduceSignalUsage"))
    return Status(StatusCode::kUnavailable,
                  what +
                      ": it was started with -Xrs and so does not handle SIGQUIT, by "
                      "which it would be asked to listen; start it without -Xrs");
  return Status(StatusCode::kUnavailable,
                what +
                    ": it does not handle SIGQUIT, by which it would be asked to "
                    "listen; try again when it has started (with -Xrs it never does)");
}

Status CheckMachine(pid_t pid, const std::string& what) {
  const GuardedText read = ReadMemoryFile(pid, "maps", kMaxMaps, kPatienceNs);
  const std::string& maps = read.text;
  if (read.is_late)
    return Status(StatusCode::kUnavailable,
                  what +
                      ": the kernel did not show its mappings in time; try again when "
                      "no program of its user hangs");
  if (read.error == EACCES)
    return Status(StatusCode::kUnavailable, what + MemoryIsClosed());
  if (read.error != 0)
    return Status::FromErrno(what + ": its mappings cannot be read", read.error);
  if (MapsFile(maps, "libj9vm"))
    return Invalid(what +
                   ": its virtual machine is OpenJ9, which is asked in other "
                   "ways; take a dump by its own jcmd");
  if (!MapsFile(maps, "libjvm.so"))
    return Invalid(what +
                   ": it has no HotSpot virtual machine (libjvm.so); jcmd -l "
                   "lists those that are running");
  return CatchesQuit(pid) ? Status() : CannotBeAsked(pid, what);
}

Result<ScopedFd> OpenRoot(pid_t pid, const std::string& what) {
  const std::shared_ptr<const ScopedFd> shared =
      OpenProcessDirectory(pid, "root", kPatienceNs);
  if (shared == nullptr)
    return Status(StatusCode::kUnavailable,
                  what +
                      ": its root directory could not be opened, or not in time; try "
                      "again, as root");
  ScopedFd root(fcntl(shared->get(), F_DUPFD_CLOEXEC, 0));
  if (!root.valid())
    return Status::FromErrno(what + ": its root directory cannot be kept open", errno);
  return root;
}

Status CheckUser(uid_t user, const std::string& what) {
  if (geteuid() == 0 || geteuid() == user)
    return {};
  return Status(StatusCode::kUnavailable,
                what + ": it belongs to user " + std::to_string(user) +
                    "; run heap_profile as this user or as root");
}

// Whether a process is a virtual machine of this name.
void Look(pid_t pid, const std::string& name, FoundMachines* found) {
  if (!name.empty() && CommandName(pid) != name) {
    const GuardedText line = ReadMemoryFile(pid, "cmdline", kMaxCommandLine, kPatienceNs);
    if (!line.is_late && !HasArgument(line.text, name))
      return;
  }
  const GuardedText maps = ReadMemoryFile(pid, "maps", kMaxMaps, kPatienceNs);
  if (maps.is_late)
    found->late += CatchesQuit(pid) ? 1U : 0U;
  else if (maps.error == EACCES)
    found->of_others += CatchesQuit(pid) ? 1U : 0U;
  else if (MapsFile(maps.text, "libjvm.so"))
    found->pids.push_back(pid);
}

}  // namespace

std::string JavaProcess::Description() const {
  return "process " + std::to_string(pid) + " (" + name + ")";
}

bool CatchesQuit(pid_t pid) {
  const std::string caught = StatusField(StatusOf(pid), "SigCgt");
  return (strtoull(caught.c_str(), nullptr, 16) >> (SIGQUIT - 1) & 1) != 0;
}

Result<JavaProcess> OpenJavaProcess(pid_t pid) {
  JavaProcess process;
  process.pid = pid;
  process.handle = ScopedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const int error = process.handle.valid() ? 0 : errno;
  const std::string status = StatusOf(pid);
  process.name = CommandName(pid);
  const std::string what = "cannot attach to " + process.Description();
  const std::optional<FourIds> users = StatusIds(status, "Uid");
  const std::optional<FourIds> groups = StatusIds(status, "Gid");
  if (error != 0 && error != ESRCH && error != EINVAL)
    return Status::FromErrno(what, error);
  if (!process.handle.valid() || !users || !groups)
    return Status(
        StatusCode::kNotFound,
        "cannot attach to process " + std::to_string(pid) + ": there is no such process");
  process.user = (*users)[kEffective];
  process.group = (*groups)[kEffective];
  process.inner_pid = InnerIdIn(status);
  HPD_TRY(CheckUser(process.user, what));
  const Status machine = CheckMachine(pid, what);
  Result<ScopedFd> root = machine.ok() ? OpenRoot(pid, what) : machine;
  if (HasEnded(process.handle))  // what has ended has no mappings and is no machine
    return Status(StatusCode::kNotFound, what + ": it has ended");
  if (!root.ok())
    return root.status();
  process.root = std::move(root).value();
  return process;
}

FoundMachines FindJavaProcesses(const std::string& name) {
  FoundMachines found;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"), closedir);
  while (const dirent* entry =
             directory != nullptr ? readdir(directory.get()) : nullptr) {
    const int pid = atoi(entry->d_name);  // NOLINT(cert-err34-c): other names give 0
    if (pid > 0 && pid != getpid())
      Look(pid, name, &found);
  }
  return found;
}

}  // namespace heapprofd
