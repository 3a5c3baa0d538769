#include "symbolize/worker_pool.h"

#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "base/child_process.h"
#include "base/files/passed_fds.h"
#include "base/scoped_fd.h"
#include "sandbox/sandbox.h"

namespace heapprofd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kProgressMs = 250;
constexpr int kOutOfMemoryExit = 77;
constexpr int kKeepsRightsExit = 78;
constexpr unsigned kMaxWorkers = 8;
constexpr int kMaxHeapBlock = 32 << 20;
constexpr int kHeapStep = 8 << 20;
constexpr uint64_t kMinMemoryBytes = uint64_t{512} << 20;

bool ReadExactly(int fd, void* data, size_t size) {
  return recv(fd, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
}

bool WriteExactly(int fd, const void* data, size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = send(fd, at, size, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return false;
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

// Private writable memory of this process, bytes.
uint64_t DataBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    uint64_t kib = 0;
    if (word == "VmData:" && status >> kib)
      return kib * 1024;
  }
  return 0;
}

// The share of one of `workers` in half of the machine's memory, at most the limit, and
// what this process, which may be a worker itself, has left.
uint64_t MemoryPerWorker(const WorkerLimits& limits, unsigned workers) {
  rlimit own{};
  getrlimit(RLIMIT_DATA, &own);
  const rlim_t most = limits.divides_memory ? own.rlim_cur : own.rlim_max;
  const uint64_t left = most - std::min<uint64_t>(most, DataBytes());
  if (!limits.divides_memory)
    return std::min(limits.memory_bytes, left);
  const auto pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  const uint64_t share = std::max(pages * 4096 / 2 / workers, kMinMemoryBytes);
  return std::min({limits.memory_bytes, share, left});
}

void Limit(__rlimit_resource resource, uint64_t value) {
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_cur = std::min<rlim_t>(value, limit.rlim_max);
  setrlimit(resource, &limit);
}

void AllowCpuSeconds(uint32_t seconds) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Limit(RLIMIT_CPU, static_cast<uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                        1 + seconds);
}

// What to open files needs, and to confine and end the workers of this one.
constexpr uint64_t kOpenersCapabilities =
    CapabilityBit(CAP_DAC_READ_SEARCH) | CapabilityBit(CAP_SETPCAP) |
    CapabilityBit(CAP_SETUID) | CapabilityBit(CAP_SETGID) | CapabilityBit(CAP_KILL);

Status GiveUpRights(int socket, const WorkerLimits& limits) {
  if (limits.rights == WorkerRights::kToOpen) {
    HPD_TRY(ForbidNewPrivileges());
    return DropCapabilities(kOpenersCapabilities);
  }
  if (limits.rights == WorkerRights::kAll)
    return {};
  std::vector<int> kept = limits.kept_fds;
  kept.push_back(socket);
  return BecomeReader(kept, limits.on_request ? SystemCalls::kUseWhatIsOpenAndAsk
                                              : SystemCalls::kUseWhatIsOpen);
}

[[noreturn]] void ServeTasks(int socket,
                             const WorkerTask& task,
                             const WorkerLimits& limits) {
  for (const int number : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGXCPU})
    signal(number, SIG_DFL);
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_DATA, DataBytes() + limits.memory_bytes);
  if (!limits.divides_memory)
    VolunteerToBeEnded();
  std::set_new_handler([] { _exit(kOutOfMemoryExit); });
  // Memory given back and taken again costs its page faults twice; a worker lives short.
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_MMAP_THRESHOLD, kMaxHeapBlock);
  mallopt(M_TOP_PAD, kHeapStep);
  if (!GiveUpRights(socket, limits).ok())
    _exit(kKeepsRightsExit);
  uint64_t index = 0;
  while (ReadExactly(socket, &index, sizeof(index))) {
    AllowCpuSeconds(limits.cpu_seconds);
    const std::string result = task(index);
    const uint64_t size = result.size();
    if (!WriteExactly(socket, &size, sizeof(size)) ||
        !WriteExactly(socket, result.data(), result.size()))
      break;
  }
  _exit(0);
}

std::string DescribeEnd(int status, const WorkerLimits& limits) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemoryExit)
    return "the worker needed more than " + std::to_string(limits.memory_bytes >> 20) +
           " MiB of memory";
  if (WIFEXITED(status) && WEXITSTATUS(status) == kKeepsRightsExit)
    return "the worker could not give up its rights, and reads no file with them";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return "the worker needed more than " + std::to_string(limits.cpu_seconds) +
           " seconds";
  if (!WIFSIGNALED(status))
    return "the worker ended with exit code " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return std::string("the worker was killed by SIG") + sigabbrev_np(signal) + " (" +
         sigdescr_np(signal) + ")";
}

class Worker {
 public:
  // Null when there can be no more processes.
  static std::unique_ptr<Worker> Start(const WorkerTask& task,
                                       const WorkerLimits& limits,
                                       std::vector<std::unique_ptr<Worker>>& siblings) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return nullptr;
    auto worker = std::make_unique<Worker>();
    worker->socket_ = ScopedFd(ends[0]);
    RefuseFds(ends[0]);  // whoever parses may be somebody else's by then
    const ScopedFd child_end(ends[1]);
    const pid_t parent = getpid();
    worker->pid_ = fork();
    if (worker->pid_ < 0)
      return nullptr;
    if (worker->pid_ == 0) {
      EndWithParent(parent, SIGKILL);
      // Our ends of the sockets: held there they would keep workers from noticing that
      // we are gone.
      worker->CloseInChild();
      for (const auto& sibling : siblings)
        sibling->CloseInChild();
      ServeTasks(child_end.get(), task, limits);
    }
    return worker;
  }

  ~Worker() {
    if (pid_ > 0)
      Kill();
  }

  bool is_busy() const { return task_.has_value(); }

  size_t task() const { return *task_; }

  int fd() const { return socket_.get(); }

  Clock::time_point deadline() const { return deadline_; }

  // False when the worker is gone.
  bool Give(size_t task, const WorkerLimits& limits) {
    task_ = task;
    taken_ = 0;
    result_.clear();
    deadline_ = Clock::now() + std::chrono::seconds(limits.wall_seconds);
    const uint64_t index = task;
    return WriteExactly(socket_.get(), &index, sizeof(index));
  }

  enum class Progress : uint8_t { kWaiting, kDone, kDead, kTooMuch };

  // Takes what has arrived.
  Progress Receive(const WorkerLimits& limits) {
    while (true) {
      const bool has_size = taken_ >= sizeof(size_);
      char* to = has_size ? result_.data() + taken_ - sizeof(size_)
                          : static_cast<char*>(static_cast<void*>(&size_)) + taken_;
      const size_t room =
          has_size ? size_ + sizeof(size_) - taken_ : sizeof(size_) - taken_;
      const ssize_t got = room > 0 ? recv(socket_.get(), to, room, MSG_DONTWAIT) : 0;
      if (got < 0 && errno == EINTR)
        continue;
      if (got < 0 && errno == EAGAIN)
        return Progress::kWaiting;
      if (got <= 0 && room > 0)
        return Progress::kDead;
      taken_ += static_cast<size_t>(got);
      if (taken_ == sizeof(size_)) {
        if (size_ > limits.result_bytes)
          return Progress::kTooMuch;
        result_.resize(size_);
      }
      if (taken_ >= sizeof(size_) && taken_ == sizeof(size_) + size_)
        return Progress::kDone;
    }
  }

  std::string TakeResult() {
    task_.reset();
    return std::move(result_);
  }

  // Ends the worker, if it has not ended by itself; returns its wait status.
  int Kill() {
    int status = 0;
    kill(pid_, SIGKILL);  // without effect on one that has
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  void CloseInChild() {
    socket_.reset();
    pid_ = -1;
  }

  pid_t pid_ = -1;
  ScopedFd socket_;
  std::optional<size_t> task_;
  size_t taken_ = 0;  // of what the worker sends: 8 bytes of size, then the result
  uint64_t size_ = 0;
  std::string result_;
  Clock::time_point deadline_;
};

class Pool {
 public:
  Pool(size_t count,
       const WorkerTask& task,
       const WorkerResult& on_result,
       const WorkerLimits& limits)
      : count_(count), task_(task), on_result_(on_result), limits_(limits) {
    if (limits_.workers == 0)
      limits_.workers = WorkersByDefault();
    limits_.memory_bytes = MemoryPerWorker(limits_, limits_.workers);
  }

  // False: cancelled.
  bool Run() {
    const int cancel_fd = limits_.cancel_fd;
    while (true) {
      GiveTasks();
      if (workers_.empty())
        return limits_.cancel_fd == cancel_fd;
      if (!Wait())
        return false;
    }
  }

 private:
  // All workers are busy afterwards; those without a task are ended.
  void GiveTasks() {
    while (next_ < count_ && workers_.size() < limits_.workers) {
      auto worker = Worker::Start(task_, limits_, workers_);
      if (worker == nullptr) {
        if (!workers_.empty())
          return;
        Report(next_++,
               Status(StatusCode::kUnavailable,
                      std::string("no process could be started: ") + strerror(errno)));
        continue;
      }
      workers_.push_back(std::move(worker));
      if (!workers_.back()->Give(next_++, limits_))
        Fail(workers_.size() - 1, "");
    }
  }

  // False: cancelled.
  bool Wait() {
    std::vector<pollfd> fds;
    Clock::time_point first = Clock::time_point::max();
    for (const auto& worker : workers_) {
      fds.push_back({.fd = worker->fd(), .events = POLLIN, .revents = 0});
      first = std::min(first, worker->deadline());
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(first - Clock::now());
    if (limits_.cancel_fd >= 0)
      fds.push_back({.fd = limits_.cancel_fd, .events = POLLIN, .revents = 0});
    const size_t cancel = workers_.size();
    if (limits_.request_fd >= 0)
      fds.push_back({.fd = limits_.request_fd, .events = POLLIN, .revents = 0});
    int64_t wait_ms = std::max<int64_t>(0, left.count()) + 1;
    if (limits_.on_progress)
      wait_ms = std::min(wait_ms, kProgressMs);
    if (poll(fds.data(), fds.size(), static_cast<int>(wait_ms)) == 0 &&
        limits_.on_progress)
      limits_.on_progress(done_);
    if (limits_.request_fd >= 0 && (fds.back().revents & POLLIN) != 0)
      limits_.on_request();
    if (limits_.cancel_fd >= 0 && fds[cancel].revents != 0)
      return Cancel();
    for (size_t i = workers_.size(); i-- > 0;)  // backwards: some are removed
      Check(i, fds[i].revents != 0);
    return true;
  }

  // False: nothing is left to be done.
  bool Cancel() {
    limits_.cancel_fd = -1;
    const size_t first_wanted = count_ - std::min(count_, limits_.not_cancelled);
    std::erase_if(workers_, [first_wanted](const std::unique_ptr<Worker>& worker) {
      return worker->task() < first_wanted;
    });
    next_ = std::max(next_, first_wanted);
    return next_ < count_ || !workers_.empty();
  }

  void Check(size_t i, bool is_readable) {
    Worker& worker = *workers_[i];
    const Worker::Progress progress =
        is_readable ? worker.Receive(limits_) : Worker::Progress::kWaiting;
    switch (progress) {
      case Worker::Progress::kDone: {
        const size_t task = worker.task();
        Report(task, worker.TakeResult());
        if (next_ == count_)
          workers_.erase(workers_.begin() + static_cast<ptrdiff_t>(i));
        else if (!worker.Give(next_++, limits_))
          Fail(i, "");
        return;
      }
      case Worker::Progress::kDead:
        return Fail(i, "");
      case Worker::Progress::kTooMuch:
        return Fail(i, "its result is too large");
      case Worker::Progress::kWaiting:
        if (Clock::now() >= worker.deadline())
          Fail(i, "the worker took more than " + std::to_string(limits_.wall_seconds) +
                      " seconds");
        return;
    }
  }

  // `reason` empty: what its end says.
  void Fail(size_t i, const std::string& reason) {
    const size_t task = workers_[i]->task();
    const int status = workers_[i]->Kill();
    workers_.erase(workers_.begin() + static_cast<ptrdiff_t>(i));
    Report(task, Status(StatusCode::kUnavailable,
                        reason.empty() ? DescribeEnd(status, limits_) : reason));
  }

  void Report(size_t task, Result<std::string> result) {
    ++done_;
    on_result_(task, std::move(result));
    if (limits_.on_progress)
      limits_.on_progress(done_);
  }

  size_t count_;
  const WorkerTask& task_;
  const WorkerResult& on_result_;
  WorkerLimits limits_;
  size_t next_ = 0;
  size_t done_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

unsigned WorkersByDefault() {
  const long processors = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  return std::min(static_cast<unsigned>(processors), kMaxWorkers);
}

bool RunInWorkers(size_t count,
                  const WorkerTask& task,
                  const WorkerResult& on_result,
                  const WorkerLimits& limits) {
  return Pool(count, task, on_result, limits).Run();
}

}  // namespace heapprofd
