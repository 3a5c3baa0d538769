// Adds dumps to an ImportedTrace, and the rows of each.
#pragma once

#include <cstdint>

#include "tables/imported_trace.h"

namespace heapprofd {

class DumpRows {
 public:
  // `trace` outlives this.
  explicit DumpRows(ImportedTrace* trace) : trace_(trace) {}

  // From here on nobody wants estimates, shapes and blocks.
  void LeaveOutEstimates() { needs_estimates_ = false; }

  // Begins a dump; the rows added next are its. Row ranges in `dump` are ignored.
  uint32_t Begin(const ImportedDump& dump);

  // The rows added next are this dump's, which is the latest one with rows or a later
  // one.
  void GoOn(uint32_t dump);

  // Nothing is added when both are 0.
  void AddAllocation(uint32_t callsite, int64_t count, int64_t size);

  struct CallsiteEstimate {
    double live_bytes_error = 0;
    double live_count_error = 0;
    double allocated_bytes_error = 0;
    double alloc_count_error = 0;
    int64_t peak_bytes = 0;
    int64_t peak_count = 0;
    int64_t idle_bytes = 0;
  };

  void AddEstimate(uint32_t callsite, const CallsiteEstimate& estimate);

  struct CallsiteTotalsAtEnd {
    int64_t alloc_size = 0;
    int64_t alloc_count = 0;
    int64_t free_size = 0;
    int64_t free_count = 0;
  };

  // Of a dump of the peak: a row of `cumulative`. Of the estimate its errors count.
  void AddCumulative(uint32_t callsite,
                     const CallsiteTotalsAtEnd& totals,
                     const CallsiteEstimate& estimate);

  struct CallsiteShape {
    ShapeKind kind = ShapeKind::kAllocatedSize;
    uint8_t log2 = 0;
    int64_t count = 0;
    int64_t size = 0;
    double count_error = 0;
    double size_error = 0;
    uint32_t utid = kNoId;
  };

  // A row of `shapes`.
  void AddShape(uint32_t callsite, const CallsiteShape& shape);

  // A row of `live_blocks`.
  void AddLiveBlock(uint32_t callsite, uint64_t address, uint64_t size);

  // Of each heap only the last dump stays, with the sums of all before it, and of
  // processes' memory nothing: for who looks at a trace that grows for ever. Dumps get
  // other ids.
  void KeepLast();

 private:
  void CopyEstimates(const EstimateTable& from, const ImportedDump& dump);

  ImportedTrace* trace_;
  bool needs_estimates_ = true;
  uint32_t rows_dump_ = 0;  // whose rows are added
};

}  // namespace heapprofd
