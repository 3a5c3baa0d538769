#include "sources/tracefs_instance.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "base/files/proc_files.h"

#ifndef TRACEFS_MAGIC
#define TRACEFS_MAGIC 0x74726163
#endif

namespace heapprofd {
namespace {

constexpr const char* kPlaces[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
constexpr std::string_view kPrefix = "heapprofd-";
constexpr size_t kMaxFormat = size_t{64} << 10;
constexpr size_t kMaxEventList = size_t{256} << 10;

// Zero, or why not.
int WriteTo(const std::string& path, const std::string& text, int flags = 0) {
  const ScopedFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | flags));
  return fd.valid() && write(fd.get(), text.data(), text.size()) >= 0 ? 0 : errno;
}

Status Set(const std::string& path, const std::string& text) {
  const int error = WriteTo(path, text);
  return error == 0 ? Status() : Status::FromErrno("cannot write " + path, error);
}

Result<std::string> FindTracefs() {
  for (const char* place : kPlaces) {
    struct statfs status {};

    if (statfs(place, &status) == 0 && status.f_type == TRACEFS_MAGIC)
      return std::string(place);
  }
  // What root alone may look into is no place that this process sees.
  const char* const who = geteuid() == 0 ? "" : ", both as root";
  return Status(
      StatusCode::kUnavailable,
      "cannot find tracefs: it is not mounted where this process sees it; mount "
      "-t tracefs tracefs /sys/kernel/tracing, and record again" +
          std::string(who));
}

// Our names carry the process id of who made them.
void RemoveLeftovers(const std::string& instances) {
  DIR* directory = opendir(instances.c_str());
  if (directory == nullptr)
    return;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix))
      continue;
    const int pid = atoi(entry->d_name + kPrefix.size());
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
      rmdir((instances + "/" + std::string(name)).c_str());
  }
  closedir(directory);
}

}  // namespace

Status TracefsInstance::Create(uint32_t buffer_kib) {
  static std::atomic<int> serial{0};
  HPD_TRY_ASSIGN(const std::string tracefs, FindTracefs());
  const std::string instances = tracefs + "/instances";
  RemoveLeftovers(instances);
  const std::string path = instances + "/" + std::string(kPrefix) +
                           std::to_string(getpid()) + "-" + std::to_string(++serial);
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno == EACCES && geteuid() != 0)
      return Status(StatusCode::kUnavailable,
                    "cannot trace the kernel: only root may; record as root");
    if (errno == EROFS)
      return Status(StatusCode::kUnavailable,
                    "cannot trace the kernel: " + instances +
                        " is read-only for this process; where that is systemd's doing, "
                        "add ReadWritePaths=-" +
                        instances + " to the unit");
    return Status::FromErrno("cannot create " + path, errno);
  }
  path_ = path;
  HPD_TRY(Set(path_ + "/trace_clock", "boot"));
  return Set(path_ + "/buffer_size_kb", std::to_string(buffer_kib));
}

Status TracefsInstance::Enable(const std::string& event) {
  std::string name = event;
  std::ranges::replace(name, '/', ':');
  const int error = WriteTo(path_ + "/set_event", name, O_APPEND);
  if (error == 0)
    return {};
  const std::string cannot = "cannot record event \"" + event + "\"";
  if (error != EINVAL)
    return Status::FromErrno(cannot, error);
  const std::string tracefs = path_.substr(0, path_.find("/instances/"));
  return Status(StatusCode::kNotFound, cannot + ": the kernel has none of this name; " +
                                           tracefs + "/available_events lists them");
}

std::vector<std::string> TracefsInstance::Enabled() const {
  std::istringstream lines(ReadProcFile(path_ + "/set_event", kMaxEventList));
  std::vector<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    std::ranges::replace(line, ':', '/');
    events.push_back(line);
  }
  return events;
}

std::string TracefsInstance::Format(const std::string& event) const {
  return ReadProcFile(path_ + "/events/" + event + "/format", kMaxFormat);
}

std::vector<ScopedFd> TracefsInstance::OpenBuffers() const {
  std::vector<ScopedFd> buffers;
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (long cpu = 0; cpu < cpus; ++cpu) {
    const std::string path =
        path_ + "/per_cpu/cpu" + std::to_string(cpu) + "/trace_pipe_raw";
    buffers.emplace_back(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  return buffers;
}

void TracefsInstance::Remove() {
  if (!path_.empty())
    rmdir(path_.c_str());
  path_.clear();
}

}  // namespace heapprofd
