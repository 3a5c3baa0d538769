// Finds the processes and threads of an ImportedTrace by the numbers that the system gave
// them, which it uses again, and gives them rows.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tables/imported_trace.h"

namespace heapprofd {

class ProcessIndex {
 public:
  // `trace` has no rows of them yet and outlives this. The first ones are those of pid 0.
  explicit ProcessIndex(ImportedTrace* trace);

  // Another file begins: its pids are other processes.
  void BeginSource();

  // The process of this pid; a new row when there is none yet.
  uint32_t ProcessOf(int64_t pid);

  // The same, but a known process of this pid that began at another time is another one:
  // pids are used again.
  uint32_t StartedProcessOf(int64_t pid, int64_t start_ts);

  // The program that a process has run since `profiling_start` (any clock; tells them
  // apart): an exec makes another process with the same pid.
  uint32_t ImageOf(int64_t pid, int64_t profiling_start);

  uint32_t ThreadOf(int64_t tid, uint32_t upid);

  // kNoId: nothing has named it yet.
  uint32_t FindThread(int64_t tid, uint32_t upid) const;

 private:
  ImportedTrace* trace_;
  std::unordered_map<int64_t, uint32_t> processes_;  // pid -> latest upid
  std::map<std::pair<int64_t, int64_t>, uint32_t> images_;
  std::unordered_set<uint32_t> image_upids_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> threads_;
};

}  // namespace heapprofd
