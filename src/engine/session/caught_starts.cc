#include "engine/session/caught_starts.h"

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace heapprofd {

CaughtStarts::~CaughtStarts() {
  if (watcher_ != nullptr)
    watcher_->Leave();
}

Status CaughtStarts::Begin(ExecWatcher::Filter filter,
                           const ExecWatcher::MakeGate& make_gate) {
  HPD_TRY_ASSIGN(watcher_, ExecWatcher::Start(std::move(filter), attached_->Options(),
                                              make_gate, context_->between()));
  return {};
}

void CaughtStarts::LeaveToParent() {
  if (watcher_ != nullptr)
    watcher_->LeaveToParent();
}

void CaughtStarts::Adopt() {
  TakeConclusions();
  if (watcher_ == nullptr)
    return;
  for (const std::shared_ptr<CaughtProgram>& caught : watcher_->TakeCaught()) {
    const Status status = AdoptOne(caught);
    if (status.ok())
      continue;
    caught->Refuse();
    context_->problems().NoteStart(status.message());
  }
  for (std::string& problem : watcher_->TakeProblems())
    context_->problems().NoteStart(std::move(problem));
}

// The same process may have been a target as the program that it was before.
Status CaughtStarts::AdoptOne(const std::shared_ptr<CaughtProgram>& caught) {
  SessionTargets& targets = context_->targets();
  const pid_t pid = caught->process().pid();
  targets.NoteExec(pid);
  HPD_TRY(targets.CheckRoom(pid));
  HPD_TRY_ASSIGN(Target* const target,
                 attached_->Add(&caught->process(), /*from_startup=*/true));
  targets.live().back().is_starting = true;
  accepted_.push_back({.caught = caught,
                       .target = target,
                       .until_ns = MonotonicNs() + ExecWatcher::kEndNs});
  caught->Accept();
  return {};
}

// Of those that have been accepted: we do not wait for the thread that puts
// their hooks in.
void CaughtStarts::TakeConclusions() {
  std::erase_if(accepted_,
                [this](const Accepted& accepted) { return Conclude(accepted); });
}

// False: not yet.
bool CaughtStarts::Conclude(const Accepted& accepted) {
  std::unique_ptr<AttachedProcess> attached;
  std::optional<Status> status = accepted.caught->TakeConclusion(&attached);
  if (!status && MonotonicNs() < accepted.until_ns)
    return false;
  if (status && status->ok()) {
    LiveTarget& live = *context_->targets().Find(accepted.target);
    live.attached = std::move(attached);
    live.is_starting = false;
    return true;
  }
  context_->targets().Forget(accepted.target);
  context_->problems().NoteStart((status ? *status : ExecWatcher::Hangs()).message());
  return true;
}

void CaughtStarts::End() {
  const std::shared_ptr<ExecWatcher> watcher = std::exchange(watcher_, nullptr);
  if (watcher == nullptr)
    return;
  if (const Status status = watcher->End(context_->meanwhile()); !status.ok())
    context_->problems().Note(status.message());
  for (Accepted& accepted : accepted_)
    accepted.until_ns = 0;
  TakeConclusions();
}

}  // namespace heapprofd
