// The packet sequence that carries all heap profiles of a trace. Its rules (the importer
// ignores or drops what breaks them):
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

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "base/status.h"
#include "profile/model.h"
#include "trace/dump_messages.h"
#include "trace/interned_ids.h"
#include "trace/trace_file.h"

namespace heapprofd {

class ProfileSequence {
 public:
  // Appends to `file`, which outlives it, and which no other ProfileSequence writes to.
  explicit ProfileSequence(TraceFile* file) : file_(file) {}

  // `heaps`: the state of all heaps of a target at one moment. `target_id` names the same
  // TargetProfile in every call.
  Status WriteHeaps(const TargetProfile& profile,
                    std::span<const HeapDump> heaps,
                    uint64_t target_id,
                    const DumpFlags& flags);

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
  Status WritePacket(uint32_t field, const std::string& message);

  TraceFile* file_;
  std::map<uint64_t, Target> targets_;
  std::map<int32_t, std::map<uint64_t, uint64_t>> dump_times_;  // taken ones, by pid
  InternedIds ids_;
  uint64_t next_index_ = 0;
  bool has_begun_ = false;
};

}  // namespace heapprofd
