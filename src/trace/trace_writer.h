// Writes profiles as a Perfetto trace that trace processor and the Perfetto UI open.
//
// One packet sequence carries all heap profiles. Its rules (the importer ignores or drops
// what breaks them):
//   - a ClockSnapshot with MONOTONIC_COARSE and BOOTTIME comes first: dump times are in
//     the former's domain;
//   - every packet has the sequence id, the first one the flag INCREMENTAL_STATE_CLEARED;
//   - ProfilePacket.index counts 0, 1, 2, ... over the whole sequence;
//   - the packets of one heap's dump are marked `continued`, an empty one without the
//     mark ends the series;
//   - packets stay below 500 kB (trace/limits.h), the header is repeated in each;
//   - values are cumulative and never fall; a callstack id belongs to one heap of one
//     target;
//   - no two dumps of a process have the same time: Perfetto's queries find the heap and
//     the interval of an allocation by it;
//   - strings precede mappings, these frames, these callstacks; id 0 is the empty string.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "base/status.h"
#include "profile/model.h"
#include "profile/recording_end.h"
#include "trace/dump_messages.h"
#include "trace/interned_ids.h"
#include "trace/module_symbols.h"
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
  explicit TraceWriter(TraceFile file) : file_(std::move(file)) {}

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
                   const DumpFlags& flags);

  // The same with the state of another moment: `heaps` in the place of the profile's own.
  Status WriteHeaps(const TargetProfile& profile,
                    std::span<const HeapDump> heaps,
                    uint64_t target_id,
                    const DumpFlags& flags);

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
  Status Finish() { return file_.Flush(); }

  // Bytes written so far.
  uint64_t size() const { return file_.size(); }

  const TraceFile& file() const { return file_; }

 private:
  // What of one target has been written already: its ids in the sequence.
  struct Target {
    InternedIds::OfTarget iids;
    std::map<std::string, FlatMap<uint64_t>> callstack_iids;  // by heap, by CallsiteId
    std::map<std::string, FlatMap<WrittenTotals>> totals;
    std::map<std::string, uint64_t> last_dump_ns;  // by heap
  };

  DumpInterval IntervalOf(const TargetProfile& profile,
                          const HeapDump& dump,
                          Target& target,
                          DumpMode mode);
  // If it is long enough; the dump goes on with the next part.
  Status WriteFullPart(std::string& message, const std::string& header);
  Status WriteHeap(const TargetProfile& profile,
                   const HeapDump& dump,
                   Target& target,
                   const DumpFlags& flags);
  Status WriteBlocks(std::string& message,
                     const std::string& header,
                     const HeapDump& dump,
                     FlatMap<uint64_t>& iids);
  Status WriteInterned(const TargetProfile& profile,
                       const HeapDump& dump,
                       Target& target,
                       const std::vector<CallsiteId>& callsites);
  // Writes and empties the batch when it has at least `min_bytes`.
  Status WriteBatch(InternedBatch& batch, size_t min_bytes);
  Status WriteProfilePacket(const std::string& process_dump, bool is_continued);
  Status WriteSequencePacket(uint32_t field, const std::string& message);

  TraceFile file_;
  std::map<uint64_t, Target> targets_;
  std::map<int32_t, std::map<uint64_t, uint64_t>> dump_times_;  // taken ones, by pid
  InternedIds ids_;
  uint64_t next_index_ = 0;
  bool sequence_has_begun_ = false;
};

}  // namespace heapprofd
