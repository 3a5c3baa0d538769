// Running processes that a session wanted, and that it does not record.
//
// One thread: the session's.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/unrecorded.h"
#include "profile/model.h"

namespace heapprofd {

class MissedProcesses {
 public:
  // Outlives it.
  explicit MissedProcesses(ProgramWatch* programs) : programs_(programs) {}

  // Another session has it already.
  void NoteTaken(const ProcessDescription& process);

  // One each, and of a process once.
  const std::vector<std::unique_ptr<TargetProfile>>& taken() const { return taken_; }

  // Of a wanted name, but other users', and ours may not be root's.
  void set_others(size_t count) { others_ = count; }

  size_t others() const { return others_; }

  // Of a wanted name or number, with our library in it: comes when it allocates.
  void NoteAsleep() { ++asleep_; }

  size_t asleep() const { return asleep_; }

  // Of a wanted name or number, and attaching to it failed, which was said.
  void NoteFailed() { has_failed_ = true; }

  bool has_failed() const { return has_failed_; }

 private:
  static constexpr size_t kMaxTaken = 10'000;

  ProgramWatch* programs_;
  std::vector<std::unique_ptr<TargetProfile>> taken_;
  size_t others_ = 0;
  size_t asleep_ = 0;
  bool has_failed_ = false;
};

}  // namespace heapprofd
