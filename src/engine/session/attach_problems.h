// What went wrong with processes that were attached to, a bounded number of
// lines: programs that could not be caught, hooks that could not be taken out.
//
// One thread: the session's.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/guarded_read.h"

namespace heapprofd {

class AttachProblems {
 public:
  void Note(std::string problem);

  // Of a program that could not be caught: one with our library may have come
  // by itself.
  void NoteStart(std::string problem);

  // One line each; nothing of the starts of programs that are recorded all the
  // same.
  std::vector<std::string> All(const std::function<bool(pid_t)>& is_recorded) const;

 private:
  static constexpr size_t kMaxProblems = 1000;

  std::vector<std::string> problems_;
  std::vector<std::pair<pid_t, std::string>> start_problems_;  // by process
  uint64_t late_reads_before_ = LateReads();
};

}  // namespace heapprofd
