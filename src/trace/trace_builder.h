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

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "trace/imported_trace.h"

namespace heapprofd {

// Open-addressing set of row numbers; the rows hold the keys.
class RowIndex {
 public:
  // The slot of the first row for which `is_equal(row)`, or a free one (*slot == kNoId).
  // The reference ends with the next call.
  template <typename IsEqual>
  uint32_t& Find(uint64_t hash, IsEqual is_equal) {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != kNoId && !is_equal(slots_[at]))
      at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  // To be called before Find when a row may be added; `hash_of(row)` of all present rows.
  template <typename HashOf>
  void Prepare(HashOf hash_of) {
    if (used_ * 3 < slots_.size() * 2)
      return;
    Column<uint32_t> old = std::move(slots_);
    slots_ = Column<uint32_t>();
    slots_.resize(old.size() < 64 ? 64 : old.size() * 2, kNoId);
    for (const uint32_t row : old.span()) {
      if (row != kNoId)
        Find(hash_of(row), [](uint32_t) { return false; }) = row;
    }
  }

  void CountAdded() { ++used_; }

 private:
  Column<uint32_t> slots_;
  size_t used_ = 0;
};

class TraceBuilder {
 public:
  // `trace` is empty and must outlive this.
  explicit TraceBuilder(ImportedTrace* trace);

  // Another file begins: its pids are other processes.
  void BeginSource();

  ImportedTrace& trace() { return *trace_; }

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

  uint32_t InternMapping(const ImportedMapping& mapping);

  // `mapping`: kNoId gives the mapping without a name or range.
  uint32_t InternFrame(StringId name, uint32_t mapping, uint64_t rel_pc);

  // `parent`: kNoId for the outermost frame.
  uint32_t InternCallsite(uint32_t parent, uint32_t frame);

  // Begins a symbol set, or goes on with it: the functions at one address, innermost
  // first. `set`: kNoId begins one. Returns the set.
  uint32_t AddSymbol(uint32_t set, StringId name, StringId source_file, uint32_t line);

  // Begins a dump; the rows added next are its. Row ranges in `dump` are ignored.
  uint32_t BeginDump(const ImportedDump& dump);

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

 private:
  ImportedTrace* trace_;
  RowIndex mapping_index_;
  RowIndex frame_index_;
  RowIndex callsite_index_;
  uint32_t no_mapping_ = kNoId;
  std::unordered_map<int64_t, uint32_t> processes_;  // pid -> latest upid
  std::map<std::pair<int64_t, int64_t>, uint32_t> images_;
  std::unordered_set<uint32_t> image_upids_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> threads_;
};

}  // namespace heapprofd
