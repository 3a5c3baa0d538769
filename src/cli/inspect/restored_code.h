// The mappings, frames and callsites of a file's trace as those of a process's profile:
// the ones that somebody asks for, in the order in which they are asked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "profile/model.h"
#include "tables/imported_trace.h"

namespace heapprofd {

class RestoredCode {
 public:
  // All must outlive this; `is_allocator` is AllocatorFrames() of the trace. `to`: where
  // they are added.
  RestoredCode(const ImportedTrace& trace,
               const std::vector<bool>& is_allocator,
               TargetProfile* to)
      : trace_(trace), is_allocator_(is_allocator), to_(*to) {}

  // The callsite that is this row of the trace's, or this stack of it where it has whole
  // ones; those share their callers only with neighbours.
  CallsiteId CallsiteOf(uint32_t row);

 private:
  MappingId MappingOf(uint32_t row);
  FrameId FrameOf(uint32_t row);
  CallsiteId AddCallsite(CallsiteId parent, uint32_t frame);
  CallsiteId CallsiteOfStack(uint32_t row);
  CallsiteId CallsiteOfLeaf(uint32_t row);

  const ImportedTrace& trace_;
  const std::vector<bool>& is_allocator_;
  TargetProfile& to_;
  FlatMap<MappingId> mappings_;  // by the trace's rows
  FlatMap<FrameId> frames_;
  FlatMap<CallsiteId> callsites_;
  std::span<const uint32_t> last_stack_;    // that became callsites
  std::vector<CallsiteId> last_callsites_;  // of its frames
};

}  // namespace heapprofd
