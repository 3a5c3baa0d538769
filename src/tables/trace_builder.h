// Fills an ImportedTrace: interns rows so that equal things have one id. For every
// importer (Perfetto traces here; other formats elsewhere).
//
//   ImportedTrace trace;
//   TraceBuilder builder(&trace);
//   const uint32_t mapping = builder.InternMapping({...});
//   const uint32_t frame = builder.InternFrame(name, mapping, rel_pc);
//   uint32_t callsite = kNoId;  // outermost first
//   callsite = builder.InternCallsite(callsite, frame);
//   const uint32_t dump = builder.dumps().Begin(
//       {.upid = builder.processes().ProcessOf(pid), ...});
//   builder.dumps().AddAllocation(callsite, count, size);
//
// Tables stop growing at 2^32 - 2 rows: interning returns kNoId then and rows are not
// added.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/row_index.h"
#include "tables/callsite_index.h"
#include "tables/dump_rows.h"
#include "tables/imported_trace.h"
#include "tables/process_index.h"

namespace heapprofd {

class DecodeQueue;

inline constexpr std::atomic<bool> kNeverCancelled = false;

class TraceBuilder {
 public:
  // `trace` is empty and must outlive this.
  explicit TraceBuilder(ImportedTrace* trace);
  ~TraceBuilder();

  ImportedTrace& trace() { return *trace_; }

  ProcessIndex& processes() { return processes_; }

  // Dumps and their rows.
  DumpRows& dumps() { return dumps_; }

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
    dumps_.LeaveOutEstimates();
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

  uint32_t InternMapping(const ImportedMapping& mapping);

  // `mapping`: kNoId gives the mapping without a name or range.
  uint32_t InternFrame(StringId name, uint32_t mapping, uint64_t rel_pc);

  // `parent`: kNoId for the outermost frame.
  uint32_t InternCallsite(uint32_t parent, uint32_t frame) {
    return callsites_.Intern(parent, frame);
  }

  // For who interns many.
  CallsiteIndex& callsites() { return callsites_; }

  // A row of `stacks`; kNoId for a stack without frames. `frames`: outermost first.
  uint32_t InternStack(std::span<const uint32_t> frames);

  // A row of `stacks` where whole stacks are read, else the callsite.
  uint32_t InternWhole(std::span<const uint32_t> frames);

  // No callsite or stack will be interned any more: what finds them is freed, which for
  // many is more than they are themselves.
  void ForgetCallsites() {
    callsites_.Forget();
    stack_index_ = RowIndex();
    stack_hashes_ = Column<uint64_t>();
  }

  // Begins a symbol set, or goes on with it: the functions at one address, innermost
  // first. `set`: kNoId begins one. Returns the set.
  uint32_t AddSymbol(uint32_t set, StringId name, StringId source_file, uint32_t line);

 private:
  ImportedTrace* trace_;
  ProcessIndex processes_;
  DumpRows dumps_;
  CallsiteIndex callsites_;
  std::unique_ptr<DecodeQueue> decoding_;
  bool defers_decoding_ = false;
  bool has_whole_stacks_ = false;
  RowIndex mapping_index_;
  RowIndex frame_index_;
  RowIndex stack_index_;
  Column<uint64_t> stack_hashes_;  // by row of `stacks`
  uint32_t no_mapping_ = kNoId;
};

}  // namespace heapprofd
