// A recorded process of a file as its recorder had it, so that what tells of a recording
// at its end (cli/results) tells the same of the file, and of files from elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/inspect/restored_code.h"
#include "profile/code_table.h"
#include "profile/model.h"
#include "query/dump_values.h"
#include "tables/imported_trace.h"

namespace heapprofd {

class RestoredProfile {
 public:
  // Without heaps. All must outlive this; `is_allocator` is AllocatorFrames() of the
  // trace, `sums` may be made anew in its place when that has grown.
  RestoredProfile(const ImportedTrace& trace,
                  const std::vector<bool>& is_allocator,
                  HeapSums& sums,
                  uint32_t upid);

  // The heap of one row of heap_dump, from its beginning up to the dump. Callsites are
  // those of profile(), for all dumps of the process. Of a dump of the maximum
  // (dump_at_max) `peak` has what was live then; of the end nothing is known where the
  // file has no ImportedTrace::cumulative.
  HeapDump Restore(uint32_t dump);

  // Adds a process's heap and what the dump tells of the process.
  void AddHeap(uint32_t dump);

  // See RestoredCode; of profile().
  CallsiteId CallsiteOf(uint32_t row) { return code_.CallsiteOf(row); }

  // For those of another moment.
  void ForgetHeaps();

  const TargetProfile& profile() const { return profile_; }

  // For names that are looked up here.
  CodeTable code() { return CodeOf(profile_); }

  uint32_t upid() const { return upid_; }

  // False: profile().quality means nothing.
  bool tells_quality() const { return tells_quality_; }

  // What the recorder knew at the end; nullptr: the file does not tell.
  const ProcessEnd* end() const { return end_; }

 private:
  ToldFigures ToldAtEnd(uint32_t dump) const;
  void AddProcess();
  void AddMemory();
  void AddEnd();
  void AddValues(uint32_t dump, HeapDump* heap);
  void AddCumulative(uint32_t dump, HeapDump* heap);
  void AddErrors(const ImportedDump& dump, HeapDump* heap);
  void EstimateErrors(HeapDump* heap) const;
  void AddShapes(uint32_t dump, HeapDump* heap);

  const ImportedTrace& trace_;
  HeapSums& sums_;
  uint32_t upid_;
  const ProcessEnd* end_ = nullptr;
  bool tells_quality_ = false;
  TargetProfile profile_;
  RestoredCode code_;  // in profile_
};

}  // namespace heapprofd
