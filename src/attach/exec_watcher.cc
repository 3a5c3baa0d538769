#include "attach/exec_watcher.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "attach/borrowed_thread.h"
#include "attach/program_start.h"
#include "attach/stopped_process.h"

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kDecisionTime{1000};
constexpr std::chrono::milliseconds kStragglerTime{10};
constexpr uint64_t kExecTimeoutNs = 2'000'000'000;  // between leave and exec
constexpr size_t kMaxFileSystems = 256;
constexpr size_t kMaxNamespaces = 256;

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

// The process that a thread belongs to; the thread becomes its only one by an exec, and
// takes its id. 0: gone.
pid_t ProcessOf(pid_t tid) {
  const std::string id =
      StatusField(ReadProcFile(ProcPath(tid, "status"), 16384), "Tgid");
  return atoi(id.c_str());  // NOLINT(cert-err34-c): gone is 0
}

void Raise(int event) {
  const uint64_t one = 1;
  const ssize_t ignored = write(event, &one, sizeof(one));
  static_cast<void>(ignored);
}

// Mount points of file systems that can hold programs, as a process sees them; reached
// by its `root`.
std::vector<std::string> MountPoints(const std::string& mounts, const std::string& root) {
  constexpr std::array<std::string_view, 17> kNoPrograms = {
      "proc",     "sysfs",   "cgroup",  "cgroup2",    "devpts",     "mqueue",
      "bpf",      "debugfs", "tracefs", "securityfs", "pstore",     "configfs",
      "efivarfs", "fusectl", "autofs",  "hugetlbfs",  "binfmt_misc"};
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
    if (std::find(kNoPrograms.begin(), kNoPrograms.end(), field) == kNoPrograms.end())
      points.push_back(root + point);
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

}  // namespace

Status ExecWatcher::Caught::Accept(std::unique_ptr<AttachedProcess>* process) {
  std::unique_lock lock(mutex_);
  if (decision_ == Decision::kNone)
    decision_ = Decision::kAccept;
  changed_.notify_all();
  changed_.wait(lock, [this] { return is_concluded_; });
  *process = std::move(process_);
  return status_;
}

void ExecWatcher::Caught::Refuse() {
  const std::lock_guard lock(mutex_);
  decision_ = Decision::kRefuse;
  changed_.notify_all();
}

bool ExecWatcher::Caught::WaitForDecision() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kDecisionTime,
                         [this] { return decision_ != Decision::kNone; }))
    decision_ = Decision::kRefuse;
  return decision_ == Decision::kAccept;
}

void ExecWatcher::Caught::Conclude(Status status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  is_concluded_ = true;
  changed_.notify_all();
}

namespace {

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

Result<std::unique_ptr<ExecWatcher>> ExecWatcher::Start(Filter filter,
                                                        uint64_t ring_size) {
  std::unique_ptr<ExecWatcher> watcher(new ExecWatcher(std::move(filter), ring_size));
  watcher->events_ = ScopedFd(
      fanotify_init(FAN_CLASS_PRE_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID,
                    O_RDONLY | O_LARGEFILE | O_CLOEXEC));
  if (!watcher->events_.valid())
    return CannotWatch(errno);
  watcher->stop_event_ = ScopedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  watcher->caught_event_ = ScopedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  watcher->answerer_ = std::thread([w = watcher.get()] { w->Answer(); });
  watcher->catcher_ = std::thread([w = watcher.get()] { w->Catch(); });
  HPD_TRY(watcher->MarkFileSystems());
  return watcher;
}

ExecWatcher::~ExecWatcher() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (const std::shared_ptr<Caught>& caught : caught_)
      caught->Refuse();
  }
  Raise(stop_event_.get());
  has_held_.notify_all();
  if (answerer_.joinable())
    answerer_.join();
  if (catcher_.joinable())
    catcher_.join();
  events_.reset();  // whoever still waits gets leave
}

// One mark per file system, however often it is mounted.
Status ExecWatcher::MarkFileSystems() {
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

void ExecWatcher::Allow(int file) const {
  const fanotify_response response{.fd = file, .response = FAN_ALLOW};
  const ssize_t ignored = write(events_.get(), &response, sizeof(response));
  static_cast<void>(ignored);
}

void ExecWatcher::Answer() {
  const Urgency urgency;  // every program that is started waits for this thread
  std::array<pollfd, 2> fds = {
      {{.fd = events_.get(), .events = POLLIN, .revents = 0},
       {.fd = stop_event_.get(), .events = POLLIN, .revents = 0}}};
  while (poll(fds.data(), fds.size(), -1) >= 0 || errno == EINTR) {
    AnswerEvents();
    if (fds[1].revents != 0)
      return;
  }
}

void ExecWatcher::AnswerEvents() {
  alignas(fanotify_event_metadata) std::array<char, 8192> buffer;
  ssize_t size = read(events_.get(), buffer.data(), buffer.size());
  const auto* event = reinterpret_cast<const fanotify_event_metadata*>(buffer.data());
  for (; FAN_EVENT_OK(event, size); event = FAN_EVENT_NEXT(event, size)) {
    if (event->fd < 0)
      continue;
    ScopedFd file(event->fd);
    std::string path = PathOf(file.get());
    if (!IsOurs(event->pid) && filter_.may_match(path)) {
      const std::lock_guard lock(mutex_);
      if (!is_stopping_ && in_exec_.insert(event->pid).second) {
        held_.push_back(
            {.file = std::move(file), .tid = event->pid, .path = std::move(path)});
        has_held_.notify_one();
        continue;
      }
    }
    Allow(file.get());
  }
}

void ExecWatcher::Catch() {
  while (true) {
    std::unique_lock lock(mutex_);
    const auto has_work = [this] { return is_stopping_ || !held_.empty(); };
    while (!has_work() && TracedThread::Stragglers() > 0) {
      has_held_.wait_for(lock, kStragglerTime, has_work);
      TracedThread::ReleaseStragglers();
    }
    has_held_.wait(lock, has_work);
    if (held_.empty())
      return;
    Held held = std::move(held_.front());
    held_.erase(held_.begin());
    if (is_stopping_) {
      Allow(held.file.get());
      continue;
    }
    const pid_t tid = held.tid;
    lock.unlock();
    CatchOne(std::move(held));
    lock.lock();
    in_exec_.erase(tid);
  }
}

void ExecWatcher::CatchOne(Held held) {
  const pid_t pid = ProcessOf(held.tid);
  const bool is_ours = TracedThread(held.tid).SeizeForExec(IsUnderSeccomp(held.tid));
  Status status = is_ours ? Status() : SeizeError(held.tid, errno);
  TracedThread thread(pid);
  Allow(held.file.get());
  held.file.reset();
  const uint64_t deadline = MonotonicNs() + kExecTimeoutNs;
  bool has_execed = false;
  while (is_ours && !has_execed && MonotonicNs() < deadline) {
    int state = 0;
    // Under one of the two ids: the exec changes it.
    pid_t waited = waitpid(held.tid, &state, __WALL | WNOHANG);
    if (waited <= 0 && pid != held.tid)
      waited = std::max(waited, waitpid(pid, &state, __WALL | WNOHANG));
    if (waited < 0 || (waited > 0 && !WIFSTOPPED(state)))
      return;  // it has ended
    if (waited > 0) {
      has_execed = state >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
      if (!has_execed)
        TracedThread(waited).Continue(state >> 16 != 0 ? 0 : WSTOPSIG(state));
      continue;
    }
    SleepNs(20'000);
  }
  if (has_execed)
    thread.NoteStopped();
  if (has_execed && filter_.matches(pid, held.path))
    status = PutClientIn(&thread);
  if (has_execed)
    thread.Release();
  else if (is_ours)
    TracedThread(held.tid).Release();
  if (is_ours && !has_execed)
    status = LostRace(pid, "its exec took longer than 2 s");
  if (!status.ok() && status.code() != StatusCode::kNotFound) {
    const std::lock_guard lock(mutex_);
    problems_.push_back(status.message());
  }
}

Status ExecWatcher::PutClientIn(TracedThread* thread) {
  HPD_TRY_ASSIGN(const RemoteProcess process, RemoteProcess::Open(thread->tid()));
  HPD_TRY(RunToStart(process, thread));
  const std::vector<MapEntry> maps = process.Maps();
  if (filter_.is_malloc_alone ? HasPreloadedClient(maps) : HasClient(maps))
    return filter_.reports_to_us(thread->tid());
  HPD_TRY_ASSIGN(std::unique_ptr<AttachedProcess> attached,
                 AttachedProcess::Place(thread->tid(), ring_size_, &finder_, thread));
  const auto caught = std::make_shared<Caught>(std::move(attached));
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_)
      return {};
    caught_.push_back(caught);
  }
  Raise(caught_event_.get());
  if (!caught->WaitForDecision()) {
    caught->Conclude(LostRace(thread->tid(), "its start could not wait any longer"));
    return {};
  }
  Status status = caught->process_->PutHooksInHeld(*thread);
  thread->Release();
  caught->Conclude(status);
  return status;
}

std::vector<std::shared_ptr<ExecWatcher::Caught>> ExecWatcher::TakeCaught() {
  uint64_t count = 0;
  const ssize_t ignored = read(caught_event_.get(), &count, sizeof(count));
  static_cast<void>(ignored);
  const std::lock_guard lock(mutex_);
  return std::exchange(caught_, {});
}

std::vector<std::string> ExecWatcher::TakeProblems() {
  const std::lock_guard lock(mutex_);
  return std::exchange(problems_, {});
}

}  // namespace heapprofd
