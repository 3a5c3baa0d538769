#include "engine/stacks/code_watch.h"

#include <utility>

namespace heapprofd {

std::optional<uint32_t> CodeWatch::LookAtUnloading() {
  const uint32_t epoch = client_->ring.modules_epoch.load(std::memory_order_acquire);
  if (epoch == confirmed_)
    return std::nullopt;  // looked at with an earlier one
  if (is_late_ && !code_->MayRefresh())
    return std::nullopt;
  const Result<RefreshOutcome> outcome = code_->Refresh();
  is_late_ = outcome.ok() && outcome.value().is_late;
  if (!outcome.ok() || is_late_)
    return std::nullopt;  // gone: what is known stays true for what was recorded
  return epoch;
}

void CodeWatch::Confirm(uint32_t epoch) {
  confirmed_ = epoch;
  control_->rules_epoch.store(epoch, std::memory_order_release);
}

bool CodeWatch::WasUnloaded() {
  const uint64_t now = code_->removals();
  return std::exchange(removals_seen_, now) != now;
}

bool CodeWatch::WasReplaced() {
  const uint64_t now = code_->replacements();
  return std::exchange(replacements_seen_, now) != now;
}

}  // namespace heapprofd
