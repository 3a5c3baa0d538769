#include "record/allocation_stream.h"

namespace heapprofd {
namespace {

constexpr size_t kBatch = 1000;  // events of one kind

}  // namespace

void AllocationStream::OnAllocation(pid_t pid, const AllocationEvent& event) {
  Process& process = processes_[pid];
  process.waiting.allocations.push_back({.address = event.address,
                                         .size = event.size,
                                         .sample_size = event.sample_size,
                                         .time_ns = event.time_ns,
                                         .number = process.next_number++});
  WriteWhenLong(pid, process);
}

void AllocationStream::OnFree(pid_t pid, uint64_t address) {
  Process& process = processes_[pid];
  process.waiting.frees.push_back({.address = address, .number = process.next_number++});
  WriteWhenLong(pid, process);
}

void AllocationStream::WriteWhenLong(pid_t pid, Process& process) {
  if (process.waiting.allocations.size() >= kBatch ||
      process.waiting.frees.size() >= kBatch)
    Write(pid, process);
}

void AllocationStream::Write(pid_t pid, Process& process) {
  Status status = writer_->WriteStream(pid, process.waiting);
  process.waiting = {};
  if (status_.ok())
    status_ = std::move(status);
}

Status AllocationStream::Flush() {
  for (auto& [pid, process] : processes_)
    Write(pid, process);
  return status_;
}

}  // namespace heapprofd
