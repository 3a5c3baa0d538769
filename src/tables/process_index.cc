#include "tables/process_index.h"

#include <optional>

namespace heapprofd {
namespace {

constexpr size_t kMaxProcesses = size_t{1} << 22;  // as many as Linux has pids
constexpr size_t kMaxThreads = size_t{1} << 22;

}  // namespace

ProcessIndex::ProcessIndex(ImportedTrace* trace) : trace_(trace) {
  HPD_CHECK(trace->processes.empty());
  trace->processes.emplace_back();
  trace->threads.push_back({.tid = 0, .upid = 0, .is_main = true});
}

void ProcessIndex::BeginSource() {
  processes_.clear();
  images_.clear();
}

uint32_t ProcessIndex::ProcessOf(int64_t pid) {
  if (pid == 0)
    return 0;
  if (trace_->processes.size() >= kMaxProcesses) {
    const auto known = processes_.find(pid);
    return known == processes_.end() ? 0 : known->second;
  }
  const auto [entry, is_new] =
      processes_.try_emplace(pid, static_cast<uint32_t>(trace_->processes.size()));
  if (is_new) {
    trace_->processes.emplace_back();
    trace_->processes.back().pid = pid;
  }
  return entry->second;
}

uint32_t ProcessIndex::StartedProcessOf(int64_t pid, int64_t start_ts) {
  const auto known = processes_.find(pid);
  if (known != processes_.end()) {
    const std::optional<int64_t>& start = trace_->processes[known->second].start_ts;
    if (start && *start != start_ts)
      processes_.erase(known);
  }
  const uint32_t upid = ProcessOf(pid);
  trace_->processes[upid].start_ts = start_ts;
  return upid;
}

uint32_t ProcessIndex::ImageOf(int64_t pid, int64_t profiling_start) {
  const std::pair<int64_t, int64_t> key = {pid, profiling_start};
  const auto known = images_.find(key);
  if (known != images_.end())
    return known->second;
  const auto latest = processes_.find(pid);
  if (latest != processes_.end() && image_upids_.contains(latest->second))
    processes_.erase(latest);
  const uint32_t upid = ProcessOf(pid);
  if (images_.size() < kMaxProcesses)
    images_[key] = upid;
  image_upids_.insert(upid);
  return upid;
}

uint32_t ProcessIndex::ThreadOf(int64_t tid, uint32_t upid) {
  if (trace_->threads.size() >= kMaxThreads)
    return 0;
  const auto [entry, is_new] =
      threads_.try_emplace({upid, tid}, static_cast<uint32_t>(trace_->threads.size()));
  if (is_new)
    trace_->threads.push_back(
        {.tid = tid, .upid = upid, .is_main = trace_->processes[upid].pid == tid});
  return entry->second;
}

uint32_t ProcessIndex::FindThread(int64_t tid, uint32_t upid) const {
  const auto found = threads_.find({upid, tid});
  return found == threads_.end() ? kNoId : found->second;
}

}  // namespace heapprofd
