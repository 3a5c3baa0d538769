#include "attach/gate/exec_watcher.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "attach/borrowed_thread.h"
#include "attach/refusals.h"
#include "attach/start/program_start.h"
#include "attach/stopped_process.h"
#include "attach/thread/stragglers.h"
#include "attach/thread/thread_states.h"

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kServeEvery{5};
constexpr int kStragglerMs = 10;
constexpr uint64_t kLoadNs =
    10'000'000'000;  // from the permission to all libraries loaded
constexpr uint64_t kUrgentLoadNs = 500'000'000;  // the same while others wait
constexpr uint64_t kSeizeNs = 5'000'000;
constexpr int kMaxFailedGates = 3;  // that end before they watch

// The process that a thread belongs to; the thread becomes its only one by an exec, and
// takes its id. 0: gone.
pid_t ProcessOf(pid_t tid) {
  const std::string id =
      StatusField(ReadProcFile(ProcPath(tid, "status"), 16384), "Tgid");
  return atoi(id.c_str());  // NOLINT(cert-err34-c): gone is 0
}

// `note`: what is not watched.
Result<GateLink> BeginWatching(const ExecNames& names,
                               const ExecWatcher::MakeGate& make_gate,
                               const std::function<void()>& between,
                               std::string* note) {
  for (int gates = 1;; ++gates) {
    HPD_TRY_ASSIGN(GateEnds ends, make_gate());
    GateLink gate(std::move(ends));
    Status status = gate.Begin(names, note, between);
    if (status.ok())
      return gate;
    if (status.code() != StatusCode::kTryAgain || gates == kMaxFailedGates)
      return status;
  }
}

}  // namespace

Status ExecWatcher::Hangs() {
  return Status(StatusCode::kUnavailable,
                "cannot catch programs at their start any more: the kernel does not come "
                "to an end with one of them; attach with -p");
}

Result<std::shared_ptr<ExecWatcher>> ExecWatcher::Start(
    Filter filter,
    AttachedProcess::Options options,
    const MakeGate& make_gate,
    const std::function<void()>& between) {
  std::string note;
  HPD_TRY_ASSIGN(GateLink gate, BeginWatching(filter.names, make_gate, between, &note));
  std::shared_ptr<ExecWatcher> watcher(
      new ExecWatcher(std::move(filter), std::move(options), std::move(gate)));
  HPD_TRY(watcher->queue_.Open());
  if (!note.empty())
    watcher->queue_.NoteProblem(Status(StatusCode::kUnavailable, note));
  watcher->catcher_ = std::thread([watcher] { watcher->Catch(); });
  return watcher;
}

void ExecWatcher::AskToEnd() {
  queue_.AskToEnd();
  gate_.Shutdown();
}

Status ExecWatcher::End(const std::function<void()>& between) {
  AskToEnd();
  const uint64_t deadline = MonotonicNs() + kEndNs;
  while (!queue_.WaitUntilOver(kServeEvery)) {
    if (MonotonicNs() > deadline) {
      catcher_.detach();
      return Hangs();
    }
    between();
  }
  catcher_.join();
  return {};
}

void ExecWatcher::Leave() {
  AskToEnd();
  catcher_.detach();
}

void ExecWatcher::Catch() {
  while (AwaitHeld()) {
    const HeldExec held = std::move(held_.front());
    held_.pop_front();
    CatchOne(held);
  }
  queue_.NoteEndOfGate();
  queue_.NoteOver();
}

bool ExecWatcher::AwaitHeld() {
  HearGate();
  while (held_.empty() && gate_.is_open()) {
    const bool has_stragglers = CountStragglers() > 0;
    gate_.Wait(has_stragglers ? kStragglerMs : -1);
    if (has_stragglers)
      ReleaseStragglers();
    HearGate();
  }
  return gate_.is_open();  // otherwise they have their permission
}

void ExecWatcher::HearGate() {
  while (const std::optional<GateLink::News> news = gate_.Receive())
    NoteNews(*news);
}

void ExecWatcher::NoteNews(const GateLink::News& news) {
  const GateMessage& message = news.message;
  switch (message.news) {
    case GateNews::kHeld:
      held_.push_back({.serial = message.number,
                       .tid = message.tid,
                       .path = news.text,
                       .until_ns = message.until_ns});
      break;
    case GateNews::kTaken:
      queue_.NoteProblem(
          CannotAttach(ProcessOf(message.tid),
                       "another recording, which waits for its name, too, has "
                       "caught it"));
      break;
    case GateNews::kMissed:
      queue_.NoteProblem(Status(
          StatusCode::kUnavailable,
          "cannot record programs from their start: " + std::to_string(message.number) +
              " whose names may match started while too many others "
              "did; attach with -p"));
      break;
    case GateNews::kReady:
    case GateNews::kRefused:
      break;
  }
}

// Whether a start may take longer: those behind it wait, too.
bool ExecWatcher::MayTakeLonger(uint64_t since_ns) {
  HearGate();
  const bool is_urgent = !held_.empty() || queue_.is_stopping();
  return MonotonicNs() < since_ns + (is_urgent ? kUrgentLoadNs : kLoadNs);
}

// It is best traced before it gets its permission: then it stops as soon as it has become
// the program. But the kernel makes us wait while the thread is at a point of its exec
// where it can no longer be traced: an older kernel (before 6.8) always, others when it
// is the interpreter of a script that it waits for. Then it gets its permission
// meanwhile, and is stopped a few instructions later, in the loader.
AwaitedExec ExecWatcher::TraceExec(const HeldExec& held,
                                   pid_t pid,
                                   const std::function<bool()>& may_wait,
                                   TracedThread* thread) {
  const std::string before = ImageId(pid);
  if (MonotonicNs() >= held.until_ns) {
    queue_.NoteProblem(CannotAttach(
        pid,
        "it could not wait any longer: others of its name were slow to start; attach "
        "with -p"));
    return AwaitedExec::kGone;
  }
  const Urgency urgency;  // it may run already
  gate_.Allow(held.serial, kSeizeNs);
  if (!thread->SeizeForExec(pid)) {
    queue_.NoteProblem(IsDead(pid, pid)
                           ? CannotAttach(pid, "it had ended when it could be traced")
                           : SeizeError(held.tid, errno));
    return AwaitedExec::kGone;
  }
  gate_.Allow(held.serial, 0);
  return AwaitExec(
      may_wait, [&] { return ImageId(pid) == before; }, thread);
}

void ExecWatcher::CatchOne(const HeldExec& held) {
  const pid_t pid = ProcessOf(held.tid);
  const auto may_wait = [this, started = MonotonicNs()] {
    return MayTakeLonger(started);
  };
  TracedThread thread(held.tid);
  const AwaitedExec exec = TraceExec(held, pid, may_wait, &thread);
  gate_.Done(held.serial);
  if (exec == AwaitedExec::kDone && filter_.matches(pid, held.path))
    queue_.NoteProblem(PutClientIn(&thread, may_wait));
  if (exec == AwaitedExec::kTimedOut)
    queue_.NoteProblem(LostRace(pid, "its exec took too long"));
  if (exec != AwaitedExec::kGone)
    thread.Release();
}

Status ExecWatcher::PutClientIn(TracedThread* thread,
                                const std::function<bool()>& may_wait) {
  HPD_TRY_ASSIGN(const RemoteProcess process, RemoteProcess::Open(thread->tid()));
  if (!thread->CanRunOurCalls())
    return SeizeError(thread->tid(), EPERM);
  HPD_TRY(RunToStart(process, may_wait, thread));
  const std::vector<MapEntry> maps = process.Maps();
  if (filter_.is_malloc_alone ? HasPreloadedClient(maps) : HasClient(maps))
    return filter_.reports_to_us(thread->tid());
  HPD_TRY_ASSIGN(std::unique_ptr<AttachedProcess> attached,
                 AttachedProcess::Place(thread->tid(), options_, &finder_, thread));
  const auto caught = std::make_shared<CaughtProgram>(std::move(attached));
  if (!queue_.Add(caught))
    return {};
  if (!caught->WaitForDecision()) {
    caught->Conclude(LostRace(thread->tid(), "its start could not wait any longer"));
    queue_.Raise();
    return {};
  }
  Status status = caught->process().PutHooksInHeld(*thread);
  thread->Release();
  caught->Conclude(std::move(status));  // the session says what is wrong
  queue_.Raise();
  return {};
}

std::vector<std::string> ExecWatcher::TakeProblems() {
  if (gate_.HasEnded())  // our thread may not have seen it yet
    queue_.NoteEndOfGate();
  return queue_.TakeProblems();
}

}  // namespace heapprofd
