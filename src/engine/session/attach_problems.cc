#include "engine/session/attach_problems.h"

#include <cstdio>

namespace heapprofd {

// Many processes can have the same one.
void AttachProblems::Note(std::string problem) {
  if (problems_.size() < kMaxProblems)
    problems_.push_back(std::move(problem));
  else if (problems_.size() == kMaxProblems)
    problems_.emplace_back("there were more problems of the kind; not all are shown");
}

void AttachProblems::NoteStart(std::string problem) {
  pid_t pid = 0;  // stays so when the message is of another form
  sscanf(problem.c_str(), "cannot attach to process %d",
         &pid);  // NOLINT(cert-err34-c)
  if (pid == 0 || start_problems_.size() >= kMaxProblems)
    return Note(std::move(problem));
  start_problems_.emplace_back(pid, std::move(problem));
}

std::vector<std::string> AttachProblems::All(
    const std::function<bool(pid_t)>& is_recorded) const {
  std::vector<std::string> problems = problems_;
  for (const auto& [pid, problem] : start_problems_) {
    if (!is_recorded(pid))
      problems.push_back(problem);
  }
  if (const uint64_t late = LateReads() - late_reads_before_; late > 0)
    problems.push_back("cannot tell all about the processes of other users: " +
                       std::to_string(late) + (late == 1 ? " look" : " looks") +
                       " at their arguments, mappings or sizes had no answer "
                       "in time, or none before; "
                       "see which of their programs hang");
  return problems;
}

}  // namespace heapprofd
