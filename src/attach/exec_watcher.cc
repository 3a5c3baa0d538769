#include "attach/exec_watcher.h"

#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "attach/borrowed_thread.h"
#include "attach/program_start.h"

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kDecisionTime{1000};
constexpr std::chrono::milliseconds kStragglerTime{10};
constexpr uint64_t kExecTimeoutNs = 2'000'000'000;  // between leave and exec

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

Result<std::unique_ptr<ExecWatcher>> ExecWatcher::Start(Filter filter,
                                                        uint64_t ring_size) {
  std::unique_ptr<ExecWatcher> watcher(new ExecWatcher(std::move(filter), ring_size));
  HPD_TRY_ASSIGN(watcher->events_, ExecEvents::Shared());
  watcher->caught_event_ = ScopedFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  watcher->catcher_ = std::thread([w = watcher.get()] { w->Catch(); });
  watcher->events_->Add(watcher.get(),
                        [w = watcher.get()](const auto& exec) { w->Offer(exec); });
  return watcher;
}

ExecWatcher::~ExecWatcher() {
  if (events_ != nullptr)
    events_->Remove(this);
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (const std::shared_ptr<Caught>& caught : caught_)
      caught->Refuse();
  }
  has_held_.notify_all();
  if (catcher_.joinable())
    catcher_.join();
}

void ExecWatcher::Offer(const std::shared_ptr<const HeldExec>& exec) {
  if (!filter_.may_match(exec->path()))
    return;
  const std::lock_guard lock(mutex_);
  if (!in_exec_.insert(exec->tid()).second)
    return;
  held_.push_back(exec);
  has_held_.notify_one();
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
    std::shared_ptr<const HeldExec> held = std::move(held_.front());
    held_.erase(held_.begin());
    if (is_stopping_)
      continue;
    const pid_t tid = held->tid();
    lock.unlock();
    CatchOne(std::move(held));
    lock.lock();
    in_exec_.erase(tid);
  }
}

void ExecWatcher::CatchOne(std::shared_ptr<const HeldExec> held) {
  const pid_t tid = held->tid();
  const std::string path = held->path();
  const pid_t pid = ProcessOf(tid);
  const bool is_ours = TracedThread(tid).SeizeForExec(IsUnderSeccomp(tid));
  Status status = is_ours ? Status() : SeizeError(tid, errno);
  TracedThread thread(pid);
  held.reset();
  const uint64_t deadline = MonotonicNs() + kExecTimeoutNs;
  bool has_execed = false;
  while (is_ours && !has_execed && MonotonicNs() < deadline) {
    int state = 0;
    // Under one of the two ids: the exec changes it.
    pid_t waited = waitpid(tid, &state, __WALL | WNOHANG);
    if (waited <= 0 && pid != tid)
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
  if (has_execed && filter_.matches(pid, path))
    status = PutClientIn(&thread);
  if (has_execed)
    thread.Release();
  else if (is_ours)
    TracedThread(tid).Release();
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
