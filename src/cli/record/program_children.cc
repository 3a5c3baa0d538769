#include "cli/record/program_children.h"

#include "base/clock.h"
#include "engine/silent_processes.h"

namespace heapprofd {

bool ProgramChildren::AreThere() {
  if (recording_->live_targets() > 0)
    return true;
  constexpr uint64_t kLookEveryNs = 200'000'000;
  const uint64_t now = MonotonicNs();
  if (silent_counted_ns_ == 0 || now - silent_counted_ns_ > kLookEveryNs) {
    silent_counted_ns_ = now;
    silent_ = CountSilent();
  }
  return silent_ > 0;
}

size_t ProgramChildren::Count(pid_t program) const {
  const SessionTargets& live = recording_->sessions()[0]->targets();
  const size_t recorded = live.CountReporting() - (live.IsProfiling(program) ? 1 : 0);
  // Silent ones are only counted where none is recorded.
  return recorded > 0 ? recorded : silent_;
}

// Forked ones that may yet report.
size_t ProgramChildren::CountSilent() const {
  Session& session = *recording_->sessions()[0];
  if (session.socket() == nullptr || !session.config().follow_children)
    return 0;
  return CountSilentProcesses(session.socket()->path(), [&session](pid_t pid) {
    return session.targets().IsProfiling(pid);
  });
}

}  // namespace heapprofd
