// stream_allocations: events of all targets, in packets of a few hundred per process.
#pragma once

#include <cstdint>
#include <map>

#include "base/status.h"
#include "engine/target/allocation_events.h"
#include "trace/trace_writer.h"

namespace heapprofd {

class AllocationStream : public AllocationEvents {
 public:
  explicit AllocationStream(TraceWriter* writer) : writer_(writer) {}

  void OnAllocation(pid_t pid, const AllocationEvent& event) override;
  void OnFree(pid_t pid, uint64_t address, uint32_t heap_id) override;

  // Writes what waits. The first error of any write is reported here.
  Status Flush();

 private:
  struct Process {
    StreamedEvents waiting;
    uint64_t next_number = 1;  // of allocations and frees together
  };

  void WriteWhenLong(pid_t pid, Process& process);
  void Write(pid_t pid, Process& process);

  TraceWriter* writer_;
  std::map<pid_t, Process> processes_;
  Status status_;
};

}  // namespace heapprofd
