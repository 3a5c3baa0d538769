#include "attach/gate/caught_program.h"

#include <chrono>

namespace heapprofd {
namespace {

constexpr std::chrono::milliseconds kDecisionTime{1000};

}  // namespace

void CaughtProgram::Accept() {
  const std::lock_guard lock(mutex_);
  if (decision_ == Decision::kNone)
    decision_ = Decision::kAccept;
  changed_.notify_all();
}

void CaughtProgram::Refuse() {
  const std::lock_guard lock(mutex_);
  decision_ = Decision::kRefuse;
  changed_.notify_all();
}

std::optional<Status> CaughtProgram::TakeConclusion(
    std::unique_ptr<AttachedProcess>* process) {
  const std::lock_guard lock(mutex_);
  if (!is_concluded_)
    return std::nullopt;
  *process = std::move(process_);
  return status_;
}

bool CaughtProgram::WaitForDecision() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kDecisionTime,
                         [this] { return decision_ != Decision::kNone; }))
    decision_ = Decision::kRefuse;
  return decision_ == Decision::kAccept;
}

void CaughtProgram::Conclude(Status status) {
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  is_concluded_ = true;
}

}  // namespace heapprofd
