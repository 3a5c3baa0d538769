// Writes profiles as a Perfetto trace that trace processor and the Perfetto UI open.
//
// Heap profiles are a packet sequence of their own (trace/profile_sequence.h). The others
// begin with a ClockSnapshot with MONOTONIC_COARSE and BOOTTIME: times of dumps are in the
// former's domain.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "profile/model.h"
#include "profile/recording_end.h"
#include "trace/dump_messages.h"
#include "trace/module_symbols.h"
#include "trace/profile_sequence.h"
#include "trace/trace_file.h"

namespace heapprofd {

// Events for stream_allocations; times on CLOCK_MONOTONIC.
struct StreamedEvents {
  struct Allocation {
    uint64_t address;
    uint64_t size;         // bytes
    uint64_t sample_size;  // bytes that the sample stands for
    uint64_t time_ns;
    uint32_t heap_id;  // 0: malloc's
    uint64_t number;   // order among all events of the process
  };

  struct Free {
    uint64_t address;
    uint32_t heap_id;
    uint64_t number;
  };

  std::vector<Allocation> allocations;
  std::vector<Free> frees;
};

class TraceWriter {
 public:
  explicit TraceWriter(TraceFile file)
      : file_(std::make_unique<TraceFile>(std::move(file))), profiles_(file_.get()) {}

  // Clocks, system, uuid. `trace_config`: a serialized TraceConfig, may be empty.
  Status WriteHeader(const std::string& trace_config);

  Status WriteProcessTree(std::span<const ProcessDescription> processes);

  // What the kernel says about the process's memory.
  Status WriteProcessMemory(const TargetProfile& profile);

  // TargetProfile::forked, when there were any.
  Status WriteUnsampledChildren(const TargetProfile& profile);

  // The current state of all heaps of a target. `target_id` names the same TargetProfile
  // in every call.
  Status WriteDump(const TargetProfile& profile,
                   uint64_t target_id,
                   const DumpFlags& flags) {
    return WriteHeaps(profile, profile.heaps, target_id, flags);
  }

  // The same with the state of another moment: `heaps` in the place of the profile's own.
  Status WriteHeaps(const TargetProfile& profile,
                    std::span<const HeapDump> heaps,
                    uint64_t target_id,
                    const DumpFlags& flags) {
    return profiles_.WriteHeaps(profile, heaps, target_id, flags);
  }

  // The moments that the program has named, as instants on a track of its process.
  Status WriteMarks(const TargetProfile& profile);

  // Function names, files and lines, inlined calls included. Behind the dumps whose
  // frames they describe.
  Status WriteModuleSymbols(const TargetProfile& profile, NamedModules named);

  // What no dump tells; behind all of them.
  Status WriteEnd(const RecordingEnd& end);

  // A packet for the allocations and one for the frees; nothing for neither.
  Status WriteStream(int32_t pid, const StreamedEvents& events);

  // A packet of a data source besides heaps. `field`: of TracePacket.
  Status WritePacket(uint32_t field, const std::string& message);

  // Writes what is buffered; more may follow.
  Status Finish() { return file_->Flush(); }

  // Bytes written so far.
  uint64_t size() const { return file_->size(); }

  const TraceFile& file() const { return *file_; }

 private:
  std::unique_ptr<TraceFile> file_;  // stays where it is when this is moved
  ProfileSequence profiles_;
};

}  // namespace heapprofd
