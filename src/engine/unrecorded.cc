#include "engine/unrecorded.h"

#include <algorithm>

namespace heapprofd {
namespace {

constexpr size_t kMaxProcesses = 100'000;
constexpr size_t kMaxNames = 5;

void Add(UnrecordedPrograms* group, const std::string& name, uint64_t count = 1) {
  group->count += count;
  if (group->names.size() < kMaxNames &&
      std::find(group->names.begin(), group->names.end(), name) == group->names.end())
    group->names.push_back(name);
}

}  // namespace

void ProgramWatch::Attempt(pid_t pid,
                           uint64_t time_ns,
                           const std::string& name,
                           UnrecordedReason reason) {
  const auto recorded = recorded_.find(pid);
  const auto old = pending_.find(pid);
  if (recorded != recorded_.end() && recorded->second >= time_ns) {
    if (old != pending_.end() && old->second.is_missed)
      old->second.name = name;
    return;  // the news of its start was faster
  }
  if (old != pending_.end()) {
    Count(old->second.name, old->second.reason, 1);  // the process id is used again
    pending_.erase(old);
  }
  if (pending_.size() < kMaxProcesses)
    pending_.emplace(pid, Pending{.name = name, .reason = reason});
  else
    Count(name, reason, 1);
}

// What was only expected of the process.
void ProgramWatch::Forget(pid_t pid) {
  const auto old = pending_.find(pid);
  if (old == pending_.end())
    return;
  if (old->second.is_missed)
    Count(old->second.name, old->second.reason, 1);
  pending_.erase(old);
}

void ProgramWatch::Failed(pid_t pid) {
  Forget(pid);
}

void ProgramWatch::Recorded(pid_t pid, uint64_t time_ns) {
  Forget(pid);
  if (recorded_.size() >= kMaxProcesses)
    recorded_.clear();
  recorded_[pid] = time_ns;
}

// NOLINTNEXTLINE(readability-function-size)
void ProgramWatch::Missed(pid_t pid,
                          uint64_t time_ns,
                          std::string name,
                          const std::string& detail,
                          UnrecordedReason reason) {
  const auto expected = pending_.find(pid);
  if (name.empty() && expected != pending_.end())
    name = expected->second.name;
  const bool is_unknown = name.empty();
  if (is_unknown)
    name = "process " + std::to_string(pid);
  Recorded(pid, time_ns);  // it needs no other reason
  if (is_unknown && pending_.size() < kMaxProcesses)
    pending_.emplace(pid, Pending{.name = name, .reason = reason, .is_missed = true});
  else
    Count(detail.empty() ? name : name + ": " + detail, reason, 1);
}

void ProgramWatch::Count(const std::string& name,
                         UnrecordedReason reason,
                         uint64_t count) {
  if (count > 0)
    Add(&groups_[static_cast<size_t>(reason)], name, count);
}

std::vector<UnrecordedPrograms> ProgramWatch::Unrecorded() const {
  std::array<UnrecordedPrograms, kUnrecordedReasons> groups = groups_;
  for (const auto& [pid, program] : pending_)
    Add(&groups[static_cast<size_t>(program.reason)], program.name);
  std::vector<UnrecordedPrograms> found;
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].reason = static_cast<UnrecordedReason>(i);
    if (groups[i].count > 0)
      found.push_back(groups[i]);
  }
  return found;
}

}  // namespace heapprofd
