// What a recording says of malloc in processes whose Java heaps are added to it: how much
// is live, and which stack a block came from.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/inspect/restored_profile.h"
#include "cli/managed/resident_table.h"
#include "cli/results/top_list.h"
#include "tables/block_index.h"
#include "tables/imported_trace.h"
#include "tables/trace_builder.h"

namespace heapprofd {

class NativeSide {
 public:
  // A trace that cannot be read tells nothing.
  explicit NativeSide(const std::string& trace_path);

  NativeSide(const NativeSide&) = delete;
  NativeSide& operator=(const NativeSide&) = delete;

  std::optional<MallocEstimate> MallocOf(int64_t pid) const;

  MallocSampling SamplingOf(int64_t pid) const;

  // The functions that allocated the sampled block that has this address, the innermost
  // one first; nullptr: no sampled block has it. Lives as long as this.
  const std::vector<std::string>* StackOf(int64_t pid, uint64_t address);

 private:
  struct Process {
    Process(const ImportedTrace& trace,
            const std::vector<bool>& is_allocator,
            HeapSums& sums,
            uint32_t upid)
        : profile(trace, is_allocator, sums, upid) {}

    RestoredProfile profile;
    StackNames names{profile.profile()};
    std::map<uint32_t, std::vector<std::string>> stacks;  // by callsite of the trace
  };

  const ImportedDump* LastOf(int64_t pid) const;

  ImportedTrace trace_;
  std::map<int64_t, uint32_t> last_dumps_;  // of malloc, by process
  std::map<uint32_t, double> live_;  // by upid: a process may have run several programs
  std::vector<bool> is_allocator_;
  std::optional<BlockIndex> blocks_;
  std::optional<HeapSums> sums_;
  std::map<int64_t, Process> processes_;
};

}  // namespace heapprofd
