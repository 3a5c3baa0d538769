#include "attach/exec_events.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "attach/remote_process.h"
#include "attach/stopped_process.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFileSystems = 256;
constexpr size_t kMaxNamespaces = 256;
constexpr uint64_t kRetryNs = 1'000'000;
constexpr uint64_t kHoldNs = 1'000'000'000;  // a program waits for its leave at most

std::string PathOf(int fd) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  return std::string(path.data(), length > 0 ? static_cast<size_t>(length) : 0);
}

// Threads of ours that execute a program would wait for themselves.
bool IsOurs(pid_t tid) {
  return access(("/proc/self/task/" + std::to_string(tid)).c_str(), F_OK) == 0;
}

// A path of mountinfo, in which blanks and the like are octal numbers.
std::string Unescaped(const std::string& text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_number = text[i] == '\\' && i + 3 < text.size();
    path += is_number
                ? static_cast<char>(strtol(text.substr(i + 1, 3).c_str(), nullptr, 8))
                : text[i];
    i += is_number ? 3 : 0;
  }
  return path;
}

// Mount points of file systems that can hold programs, as a process sees them; reached
// by its `root`. Not of those whose files somebody else provides: the kernel opens each
// program once more on our answering thread, which a slow server, or a user's own one,
// would keep there while every exec on this machine waits.
std::vector<std::string> MountPoints(const std::string& mounts, const std::string& root) {
  constexpr std::array<std::string_view, 17> kNoPrograms = {
      "proc",     "sysfs",   "cgroup",  "cgroup2",    "devpts",     "mqueue",
      "bpf",      "debugfs", "tracefs", "securityfs", "pstore",     "configfs",
      "efivarfs", "fusectl", "autofs",  "hugetlbfs",  "binfmt_misc"};
  constexpr std::array<std::string_view, 10> kProvided = {
      "fuse", "nfs", "cifs", "smb", "9p", "ceph", "afs", "lustre", "gfs", "ocfs"};
  const auto is_provided = [&kProvided](const std::string& type) {
    return std::any_of(kProvided.begin(), kProvided.end(),
                       [&type](auto prefix) { return type.starts_with(prefix); });
  };
  std::vector<std::string> points;
  std::istringstream lines(ReadProcFile(mounts));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string point;
    std::string field;
    for (int i = 0; i < 5 && fields >> point; ++i) {
    }
    while (fields >> field && field != "-") {
    }
    fields >> field;
    if (std::find(kNoPrograms.begin(), kNoPrograms.end(), field) == kNoPrograms.end() &&
        !is_provided(field))
      points.push_back(root + Unescaped(point));
  }
  return points;
}

// Of this process, and of one in each mount namespace: containers.
std::vector<std::string> AllMountPoints() {
  std::vector<std::string> points = MountPoints("/proc/self/mountinfo", "");
  std::set<std::string> seen;
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  while (const dirent* entry =
             processes != nullptr ? readdir(processes.get()) : nullptr) {
    const int pid = atoi(entry->d_name);  // NOLINT(cert-err34-c): other names give 0
    std::array<char, 64> space{};
    if (pid <= 0 ||
        readlink(ProcPath(pid, "ns/mnt").c_str(), space.data(), space.size() - 1) <= 0 ||
        !seen.insert(space.data()).second || seen.size() > kMaxNamespaces)
      continue;
    const std::vector<std::string> more =
        MountPoints(ProcPath(pid, "mountinfo"), ProcPath(pid, "root"));
    points.insert(points.end(), more.begin(), more.end());
  }
  return points;
}

Status CannotWatch(int error) {
  const char* remedy = error == EMFILE
                           ? "stop other sessions, or raise the limits "
                             "fs.fanotify.max_user_groups and ulimit -n"
                           : "this needs root (CAP_SYS_ADMIN); as an ordinary user start "
                             "the program with heap_profile -- PROGRAM";
  return Status(
      StatusCode::kUnavailable,
      std::string("cannot watch for new processes: ") + strerror(error) + "; " + remedy);
}

}  // namespace

HeldExec::~HeldExec() {
  Allow();
}

void HeldExec::Allow() const {
  const std::lock_guard lock(mutex_);
  if (!file_.valid())
    return;
  const fanotify_response response{.fd = file_.get(), .response = FAN_ALLOW};
  const ssize_t ignored = write(events_, &response, sizeof(response));
  static_cast<void>(ignored);
  file_.reset();
}

bool HeldExec::is_allowed() const {
  const std::lock_guard lock(mutex_);
  return !file_.valid();
}

Result<std::shared_ptr<ExecEvents>> ExecEvents::Shared() {
  static std::mutex mutex;
  static std::weak_ptr<ExecEvents> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<ExecEvents> events = shared.lock();
  if (events == nullptr) {
    events = std::make_shared<ExecEvents>();
    HPD_TRY(events->Open());
    shared = events;
  }
  // Each time: there may be new ones.
  HPD_TRY(events->MarkFileSystems());
  return events;
}

Status ExecEvents::Open() {
  events_ = ScopedFd(
      fanotify_init(FAN_CLASS_PRE_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID,
                    O_RDONLY | O_LARGEFILE | O_CLOEXEC));
  if (!events_.valid())
    return CannotWatch(errno);
  wake_event_ = ScopedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_.valid())
    return CannotWatch(errno);
  answerer_ = std::thread([this] { Answer(); });
  return {};
}

ExecEvents::~ExecEvents() {
  is_stopping_ = true;
  Wake();
  if (answerer_.joinable())
    answerer_.join();
}

void ExecEvents::Wake() const {
  const uint64_t one = 1;
  const ssize_t ignored = write(wake_event_.get(), &one, sizeof(one));
  static_cast<void>(ignored);
}

void ExecEvents::Add(const void* key, Taker taker) {
  const std::lock_guard lock(takers_mutex_);
  takers_[key] = std::move(taker);
}

void ExecEvents::Remove(const void* key) {
  const std::lock_guard lock(takers_mutex_);
  takers_.erase(key);
}

void ExecEvents::AllowAt(const std::shared_ptr<const HeldExec>& exec, uint64_t time_ns) {
  {
    const std::lock_guard lock(limits_mutex_);
    limits_.emplace_back(time_ns, exec);
  }
  Wake();
}

int ExecEvents::AllowOverdue() {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const uint64_t now = MonotonicNs();
  uint64_t next = ~uint64_t{0};
  const std::lock_guard lock(limits_mutex_);
  std::erase_if(limits_, [now, &next](const auto& limit) {
    const std::shared_ptr<const HeldExec> exec = limit.second.lock();
    if (exec != nullptr && limit.first <= now)
      exec->Allow();
    const bool is_over = exec == nullptr || exec->is_allowed();
    if (!is_over)
      next = std::min(next, limit.first);
    return is_over;
  });
  return next == ~uint64_t{0} ? -1 : static_cast<int>((next - now) / kNsPerMs + 1);
}

// One mark per file system, however often it is mounted.
Status ExecEvents::MarkFileSystems() {
  std::set<dev_t> marked;
  int error = 0;
  for (const std::string& point : AllMountPoints()) {
    struct stat status {};

    if (stat(point.c_str(), &status) != 0 || marked.size() >= kMaxFileSystems ||
        !marked.insert(status.st_dev).second)
      continue;
    if (fanotify_mark(events_.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM,
                      FAN_OPEN_EXEC_PERM, AT_FDCWD, point.c_str()) != 0) {
      marked.erase(status.st_dev);
      error = errno;
    }
  }
  if (!marked.empty())
    return {};
  return Status::FromErrno("cannot watch any file system for new processes", error);
}

void ExecEvents::Answer() {
  const Urgency urgency;  // every program that is started waits for this thread
  std::array<pollfd, 2> fds = {
      {{.fd = events_.get(), .events = POLLIN, .revents = 0},
       {.fd = wake_event_.get(), .events = POLLIN, .revents = 0}}};
  while (!is_stopping_) {
    if (poll(fds.data(), fds.size(), AllowOverdue()) < 0 && errno != EINTR)
      SleepNs(kRetryNs);  // nobody else answers
    uint64_t count = 0;
    const ssize_t ignored = read(wake_event_.get(), &count, sizeof(count));
    static_cast<void>(ignored);
    AnswerEvents();
  }
}

void ExecEvents::AnswerEvents() {
  alignas(fanotify_event_metadata) std::array<char, 8192> buffer;
  ssize_t size = read(events_.get(), buffer.data(), buffer.size());
  const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
  for (; FAN_EVENT_OK(event, size); event = FAN_EVENT_NEXT(event, size)) {
    if (event->fd < 0)
      continue;
    ScopedFd file(event->fd);
    std::string path = PathOf(file.get());
    const auto held = std::make_shared<const HeldExec>(events_.get(), std::move(file),
                                                       event->pid, std::move(path));
    if (IsOurs(event->pid))
      continue;
    {
      const std::lock_guard lock(takers_mutex_);
      for (const auto& [key, take] : takers_)
        take(held);
    }
    if (held.use_count() > 1)
      AllowAt(held, MonotonicNs() + kHoldNs);
  }
}

}  // namespace heapprofd
