#include "engine/session/missed_processes.h"

#include <utility>

#include "base/clock.h"

namespace heapprofd {

void MissedProcesses::NoteTaken(const ProcessDescription& process) {
  if (taken_.size() >= kMaxTaken)
    return programs_->Count(process.cmdline[0], UnrecordedReason::kDeclined, 1);
  for (const std::unique_ptr<TargetProfile>& known : taken_) {
    if (known->process.pid == process.pid)
      return;
  }
  auto profile = std::make_unique<TargetProfile>();
  profile->process = process;
  profile->process.start_ns = MonotonicNs();
  profile->rejected_concurrent = true;
  profile->reason = "another session profiles this process";
  taken_.push_back(std::move(profile));
}

}  // namespace heapprofd
