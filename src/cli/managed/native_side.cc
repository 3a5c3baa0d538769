#include "cli/managed/native_side.h"

#include "cli/results/quality_warnings.h"
#include "import/import_file.h"
#include "profile/model.h"
#include "query/allocators.h"

namespace heapprofd {

NativeSide::NativeSide(const std::string& trace_path) {
  {
    TraceBuilder builder(&trace_);
    builder.ReadWholeStacks();
    if (!ImportFile(trace_path, builder).ok())
      trace_.dumps.clear();
    else if (trace_.live_blocks.row_count() > 0)
      builder.UseCallsites();
  }
  for (uint32_t id = 0; id < trace_.dumps.size(); ++id) {
    const ImportedDump& dump = trace_.dumps[id];
    if (trace_.Text(dump.heap_name) != kMallocHeapName)
      continue;
    last_dumps_[trace_.processes[dump.upid].pid] = id;
    if (dump.is_peak)  // tells of another moment than the end
      continue;
    double& live = live_[dump.upid];
    for (size_t i = 0; i < dump.allocation_count; ++i)
      live += static_cast<double>(trace_.allocations.size[dump.first_allocation + i]);
  }
  if (trace_.live_blocks.row_count() == 0)
    return;
  is_allocator_ = AllocatorFrames(trace_);
  blocks_.emplace(trace_);
  sums_.emplace(trace_);
}

const ImportedDump* NativeSide::LastOf(int64_t pid) const {
  const auto found = last_dumps_.find(pid);
  return found == last_dumps_.end() ? nullptr : &trace_.dumps[found->second];
}

std::optional<MallocEstimate> NativeSide::MallocOf(int64_t pid) const {
  const ImportedDump* const last = LastOf(pid);
  if (last == nullptr || last->sampling_interval == 0 || last->is_peak ||
      !last->live_low || !last->live_high)
    return std::nullopt;
  const auto high = static_cast<double>(*last->live_high);
  return MallocEstimate{std::min(live_.at(last->upid), high),
                        static_cast<double>(*last->live_low), high};
}

MallocSampling NativeSide::SamplingOf(int64_t pid) const {
  const ImportedDump* const last = LastOf(pid);
  if (last == nullptr)
    return {};
  const Quality quality =
      last->quality == kNoId ? Quality() : trace_.qualities[last->quality];
  return {.interval = last->sampling_interval,
          .unlisted_blocks = quality.unlisted_blocks,
          .lacks_records = IsIncomplete(quality)};
}

const std::vector<std::string>* NativeSide::StackOf(int64_t pid, uint64_t address) {
  const ImportedDump* const last = LastOf(pid);
  const uint32_t block =
      last == nullptr || !blocks_ ? kNoId : blocks_->Find(last->upid, address);
  if (block == kNoId)
    return nullptr;
  const auto known =
      processes_.try_emplace(pid, trace_, is_allocator_, *sums_, last->upid).first;
  Process& process = known->second;
  const uint32_t callsite = trace_.live_blocks.callsite[block];
  const auto [stack, is_new] = process.stacks.try_emplace(callsite);
  if (is_new) {
    for (const StackNames::Position& position :
         process.names.Shown(process.profile.CallsiteOf(callsite)))
      stack->second.push_back(process.names.Label(position));
  }
  return &stack->second;
}

}  // namespace heapprofd
