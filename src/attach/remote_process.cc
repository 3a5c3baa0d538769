#include "attach/remote_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "base/files/guarded_read.h"
#include "base/files/own_rights.h"

namespace heapprofd {
namespace {

// A child between vfork and exec runs in its parent's memory: what is done to it is done
// to a process that nobody has stopped.
bool RunsInParentsMemory(pid_t pid) {
  constexpr long kCompareMemory = 1;  // KCMP_VM
  const std::string parent =
      StatusField(ReadProcFile(ProcPath(pid, "status"), 16384), "PPid");
  const pid_t parent_pid = atoi(parent.c_str());  // NOLINT(cert-err34-c): 0 is nobody
  return parent_pid > 0 && syscall(SYS_kcmp, pid, parent_pid, kCompareMemory, 0, 0) == 0;
}

Status NoProgram(const std::string& what) {
  return Status(StatusCode::kNotFound,
                what + ": it has no program (a kernel thread, or it has just ended)");
}

Status NotReadable(const std::string& what) {
  return Status(StatusCode::kUnavailable, what + MemoryIsClosed());
}

}  // namespace

pid_t LiveThread(pid_t pid) {
  char link = 0;
  if (readlink(ProcPath(pid, "exe").c_str(), &link, 1) > 0)
    return pid;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      opendir(ProcPath(pid, "task").c_str()), closedir);
  while (const dirent* entry =
             directory != nullptr ? readdir(directory.get()) : nullptr) {
    const int tid = atoi(entry->d_name);  // NOLINT(cert-err34-c): "." and ".." give 0
    if (tid > 0 && readlink(ProcPath(tid, "exe").c_str(), &link, 1) > 0)
      return tid;
  }
  return pid;
}

std::string CommandName(pid_t pid) {
  std::string name = ReadProcFile(ProcPath(pid, "comm"), 64);
  if (!name.empty() && name.back() == '\n')
    name.pop_back();
  return name;
}

std::string ImageId(pid_t pid) {
  const pid_t view = LiveThread(pid);
  constexpr int kStartTime = 22;
  const auto stat = [](pid_t id) {
    return ReadProcFile(ProcPath(id, "stat"), kMaxStatText);
  };
  std::string id = StatFields(stat(pid), kStartTime, kStartTime);
  id += StatFields(stat(view), 26, 28);
  std::array<char, PATH_MAX> exe{};
  if (readlink(ProcPath(view, "exe").c_str(), exe.data(), exe.size() - 1) <= 0)
    return "";  // gone, or a zombie
  return id + exe.data();
}

Result<RemoteProcess> RemoteProcess::Open(pid_t pid) {
  const std::string what = "cannot attach to process " + std::to_string(pid);
  const pid_t view = LiveThread(pid);
  ScopedFd memory(open(ProcPath(view, "mem").c_str(), O_RDWR | O_CLOEXEC));
  if (!memory.valid()) {
    if ((errno == ENOENT || errno == ESRCH) &&
        access(ProcPath(pid, "").c_str(), F_OK) != 0)
      return Status(StatusCode::kNotFound,
                    what + ": there is no such process; check the number");
    if (errno == ENOENT || errno == ESRCH)
      return NoProgram(what);
    if (errno != EACCES && errno != EPERM)
      return Status::FromErrno(what, errno);
    return NotReadable(what);
  }
  std::string image_id = ImageId(pid);
  if (image_id.empty())
    return NoProgram(what);
  if (RunsInParentsMemory(pid))
    return Status(StatusCode::kTryAgain,
                  what + ": it is about to start a program; try again");
  return RemoteProcess(pid, view, std::move(memory), std::move(image_id));
}

bool RemoteProcess::Read(uint64_t address, void* to, size_t size) const {
  return pread(memory_.get(), to, size, static_cast<off_t>(address)) ==
         static_cast<ssize_t>(size);
}

bool RemoteProcess::Write(uint64_t address, const void* from, size_t size) const {
  return pwrite(memory_.get(), from, size, static_cast<off_t>(address)) ==
         static_cast<ssize_t>(size);
}

bool RemoteProcess::Lock() const {
  return flock(memory_.get(), LOCK_EX | LOCK_NB) == 0;
}

void RemoteProcess::Unlock() const {
  flock(memory_.get(), LOCK_UN);
}

std::vector<MapEntry> RemoteProcess::Maps() const {
  return ParseMaps(ReadProcFile(ProcPath(view(), "maps")));
}

pid_t RemoteProcess::view() const {
  return LiveThread(pid_);
}

bool RemoteProcess::IsSameImage() const {
  return ImageId(pid_) == image_id_;
}

bool RemoteProcess::HasBecomeAnother() const {
  const GuardedText now = AskAbout(pid_, [pid = pid_] { return ImageId(pid); });
  const bool is_known = !now.is_late && (now.error == 0 || now.error == ESRCH);
  return is_known && now.text != image_id_;
}

std::vector<pid_t> RemoteProcess::Threads() const {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      opendir(ProcPath(pid_, "task").c_str()), closedir);
  if (directory == nullptr)
    return threads;
  while (const dirent* entry = readdir(directory.get())) {
    const int tid = atoi(entry->d_name);  // NOLINT(cert-err34-c): "." and ".." give 0
    if (tid > 0)
      threads.push_back(tid);
  }
  return threads;
}

}  // namespace heapprofd
