#include "engine/session/session_context.h"

#include <algorithm>

#include "base/clock.h"
#include "engine/fair_turn.h"

namespace heapprofd {

SessionContext::SessionContext(const SessionConfig& config,
                               SessionTargets::TakeHooksOut take_hooks_out)
    : config_(config),
      targets_(
          &clock_,
          &programs_,
          [this](std::string problem) { problems_.Note(std::move(problem)); },
          std::move(take_hooks_out)) {
  clock_.Update();
}

std::vector<std::string> SessionContext::AllProblems() const {
  return problems_.All([this](pid_t pid) {
    return std::ranges::any_of(
        targets_.all(), [pid](const auto& target) { return target->pid() == pid; });
  });
}

void SessionContext::ServeMeanwhile() {
  targets_.Drain(MonotonicNs() + FairTurn::kTurnNs);
  between_();
}

}  // namespace heapprofd
