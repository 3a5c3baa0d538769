// Fills an ImportedTrace: interns rows so that equal things have one id. For every
// importer (Perfetto traces here; other formats elsewhere).
//
//   ImportedTrace trace;
//   TraceBuilder builder(&trace);
//   const uint32_t mapping = builder.InternMapping({...});
//   const uint32_t frame = builder.InternFrame(name, mapping, rel_pc);
//   uint32_t callsite = kNoId;  // outermost first
//   callsite = builder.InternCallsite(callsite, frame);
//   const uint32_t dump = builder.BeginDump({.upid = builder.ProcessOf(pid), ...});
//   builder.AddAllocation(callsite, count, size);
//
// Tables stop growing at 2^32 - 2 rows: interning returns kNoId then and rows are not
// added.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/row_index.h"
#include "tables/imported_trace.h"

namespace heapprofd {

class DecodeQueue;

inline constexpr std::atomic<bool> kNeverCancelled = false;

class TraceBuilder {
 public:
  // `trace` is empty and must outlive this.
  explicit TraceBuilder(ImportedTrace* trace);
  ~TraceBuilder();

  // Another file begins: its pids are other processes.
  void BeginSource();

  ImportedTrace& trace() { return *trace_; }

  // What is read from here on is decoded by decoding().Run(): until then callsites,
  // allocations, estimates and what they say of dumps and stats are missing, and the
  // builder must be kept. Before rows are added by others, it must have been run.
  void DeferDecoding() { defers_decoding_ = true; }

  DecodeQueue& decoding() { return *decoding_; }

  // What is read is wanted for conversions only: stacks become rows of `stacks`, which
  // takes a third of the time and memory of callsites, and estimates are left out. To be
  // called before anything is read.
  void ReadForConversion() {
    has_whole_stacks_ = true;
    needs_estimates_ = false;
  }

  // The same for who needs estimates, and perhaps callsites later.
  void ReadWholeStacks() { has_whole_stacks_ = true; }

  bool has_whole_stacks() const { return has_whole_stacks_; }

  // Decodes what was read so far and makes its stacks callsites, with the ids that they
  // have where callsites are read at once, as they are from here on. False: `cancelled`
  // was set, and they still are whole stacks.
  bool UseCallsites(const std::atomic<bool>& cancelled = kNeverCancelled);

  // For who has pushed to decoding().
  void DecodeUnlessDeferred();

  StringId Intern(std::string_view text) { return trace_->strings.Intern(text); }

  // The process of this pid; a new row when there is none yet.
  uint32_t ProcessOf(int64_t pid);

  // The same, but a known process of this pid that began at another time is another one:
  // pids are used again.
  uint32_t StartedProcessOf(int64_t pid, int64_t start_ts);

  // The program that a process has run since `profiling_start` (any clock; tells them
  // apart): an exec makes another process with the same pid.
  uint32_t ImageOf(int64_t pid, int64_t profiling_start);

  uint32_t ThreadOf(int64_t tid, uint32_t upid);

  // kNoId: nothing has named it yet.
  uint32_t FindThread(int64_t tid, uint32_t upid) const;

  uint32_t InternMapping(const ImportedMapping& mapping);

  // `mapping`: kNoId gives the mapping without a name or range.
  uint32_t InternFrame(StringId name, uint32_t mapping, uint64_t rel_pc);

  // `parent`: kNoId for the outermost frame.
  uint32_t InternCallsite(uint32_t parent, uint32_t frame);

  // A row of `stacks`; kNoId for a stack without frames. `frames`: outermost first.
  uint32_t InternStack(std::span<const uint32_t> frames);

  // A row of `stacks` where whole stacks are read, else the callsite.
  uint32_t InternWhole(std::span<const uint32_t> frames);

  // No callsite or stack will be interned any more: what finds them is freed, which for
  // many is more than they are themselves.
  void ForgetCallsites() {
    callsite_index_ = RowIndex();
    stack_index_ = RowIndex();
  }

  // For who interns many callsites: prefetches the memory that the look-up of a callsite
  // needs; then, a little later, names the one that it most likely is (kNoId: none) and
  // prefetches that; and tells whether it is.
  void PrefetchCallsite(uint32_t parent, uint32_t frame) const;
  uint32_t LikelyCallsite(uint32_t parent, uint32_t frame) const;
  bool IsCallsite(uint32_t callsite, uint32_t parent, uint32_t frame) const;

  // Begins a symbol set, or goes on with it: the functions at one address, innermost
  // first. `set`: kNoId begins one. Returns the set.
  uint32_t AddSymbol(uint32_t set, StringId name, StringId source_file, uint32_t line);

  // Begins a dump; the rows added next are its. Row ranges in `dump` are ignored.
  uint32_t BeginDump(const ImportedDump& dump);

  // The rows added next are this dump's, which is the latest one with rows or a later
  // one.
  void BeginRows(uint32_t dump);

  // Nothing is added when both are 0.
  void AddAllocation(uint32_t callsite, int64_t count, int64_t size);

  struct CallsiteEstimate {
    double live_bytes_error = 0;
    double live_count_error = 0;
    double allocated_bytes_error = 0;
    double alloc_count_error = 0;
    int64_t peak_bytes = 0;
    int64_t peak_count = 0;
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

  // Of each heap only the last dump stays, with the sums of all before it, and of
  // processes' memory nothing: for who looks at a trace that grows for ever. Dumps get
  // other ids.
  void KeepLastDumps();

  // A row of `shapes`.
  void AddShape(uint32_t callsite, const CallsiteShape& shape);

  // A row of `live_blocks`.
  void AddLiveBlock(uint32_t callsite, uint64_t address, uint64_t size);

 private:
  void CopyEstimates(const EstimateTable& from, const ImportedDump& dump);

  ImportedTrace* trace_;
  std::unique_ptr<DecodeQueue> decoding_;
  bool defers_decoding_ = false;
  bool has_whole_stacks_ = false;
  bool needs_estimates_ = true;
  uint32_t rows_dump_ = 0;  // whose rows are added
  RowIndex mapping_index_;
  RowIndex frame_index_;
  RowIndex callsite_index_;
  RowIndex stack_index_;
  uint32_t no_mapping_ = kNoId;
  std::unordered_map<int64_t, uint32_t> processes_;  // pid -> latest upid
  std::map<std::pair<int64_t, int64_t>, uint32_t> images_;
  std::unordered_set<uint32_t> image_upids_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> threads_;
};

}  // namespace heapprofd
