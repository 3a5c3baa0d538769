#include "tables/trace_builder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tables/decode_queue.h"
#include "tables/stack_interner.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxRows = kNoId - 1;
constexpr size_t kMaxProcesses = size_t{1} << 22;  // as many as Linux has pids
constexpr size_t kMaxThreads = size_t{1} << 22;
constexpr size_t kMaxDumps = size_t{1} << 22;

uint64_t HashOf(const ImportedMapping& mapping) {
  uint64_t hash = Mix((uint64_t{mapping.name} << 32) | mapping.build_id);
  for (const uint64_t part : {mapping.exact_offset, mapping.start_offset, mapping.start,
                              mapping.end, mapping.load_bias})
    hash = Mix(hash ^ part);
  return hash;
}

bool AreEqual(const ImportedMapping& a, const ImportedMapping& b) {
  return a.start == b.start && a.name == b.name && a.build_id == b.build_id &&
         a.exact_offset == b.exact_offset && a.start_offset == b.start_offset &&
         a.end == b.end && a.load_bias == b.load_bias;
}

uint64_t FrameHash(StringId name, uint32_t mapping, uint64_t rel_pc) {
  return Mix(rel_pc ^ Mix((uint64_t{mapping} << 32) | name));
}

uint64_t CallsiteHash(uint32_t parent, uint32_t frame) {
  return Mix((uint64_t{parent} << 32) | frame);
}

uint64_t StackHash(std::span<const uint32_t> frames) {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(frames.data()), frames.size_bytes()});
}

}  // namespace

TraceBuilder::TraceBuilder(ImportedTrace* trace)
    : trace_(trace), decoding_(std::make_unique<DecodeQueue>()) {
  HPD_CHECK(trace->processes.empty());
  trace->processes.emplace_back();
  trace->threads.push_back({.tid = 0, .upid = 0, .is_main = true});
}

TraceBuilder::~TraceBuilder() = default;

void TraceBuilder::DecodeUnlessDeferred() {
  if (!defers_decoding_)
    decoding_->Run();
}

void TraceBuilder::BeginSource() {
  processes_.clear();
  images_.clear();
}

uint32_t TraceBuilder::ProcessOf(int64_t pid) {
  if (pid == 0)
    return 0;
  if (trace_->processes.size() >= kMaxProcesses) {
    const auto known = processes_.find(pid);
    return known == processes_.end() ? 0 : known->second;
  }
  const auto [entry, is_new] =
      processes_.try_emplace(pid, static_cast<uint32_t>(trace_->processes.size()));
  if (is_new) {
    trace_->processes.emplace_back();
    trace_->processes.back().pid = pid;
  }
  return entry->second;
}

uint32_t TraceBuilder::StartedProcessOf(int64_t pid, int64_t start_ts) {
  const auto known = processes_.find(pid);
  if (known != processes_.end()) {
    const std::optional<int64_t>& start = trace_->processes[known->second].start_ts;
    if (start && *start != start_ts)
      processes_.erase(known);
  }
  const uint32_t upid = ProcessOf(pid);
  trace_->processes[upid].start_ts = start_ts;
  return upid;
}

uint32_t TraceBuilder::ImageOf(int64_t pid, int64_t profiling_start) {
  const std::pair<int64_t, int64_t> key = {pid, profiling_start};
  const auto known = images_.find(key);
  if (known != images_.end())
    return known->second;
  const auto latest = processes_.find(pid);
  if (latest != processes_.end() && image_upids_.contains(latest->second))
    processes_.erase(latest);
  const uint32_t upid = ProcessOf(pid);
  if (images_.size() < kMaxProcesses)
    images_[key] = upid;
  image_upids_.insert(upid);
  return upid;
}

uint32_t TraceBuilder::ThreadOf(int64_t tid, uint32_t upid) {
  if (trace_->threads.size() >= kMaxThreads)
    return 0;
  const auto [entry, is_new] =
      threads_.try_emplace({upid, tid}, static_cast<uint32_t>(trace_->threads.size()));
  if (is_new)
    trace_->threads.push_back(
        {.tid = tid, .upid = upid, .is_main = trace_->processes[upid].pid == tid});
  return entry->second;
}

uint32_t TraceBuilder::FindThread(int64_t tid, uint32_t upid) const {
  const auto found = threads_.find({upid, tid});
  return found == threads_.end() ? kNoId : found->second;
}

uint32_t TraceBuilder::InternMapping(const ImportedMapping& mapping) {
  std::vector<ImportedMapping>& rows = trace_->mappings;
  mapping_index_.Prepare([&](uint32_t row) { return HashOf(rows[row]); });
  uint32_t& row = mapping_index_.Find(
      HashOf(mapping), [&](uint32_t other) { return AreEqual(rows[other], mapping); });
  if (row == kNoId && rows.size() < kMaxRows) {
    row = static_cast<uint32_t>(rows.size());
    rows.push_back(mapping);
    mapping_index_.CountAdded();
  }
  return row;
}

uint32_t TraceBuilder::InternFrame(StringId name, uint32_t mapping, uint64_t rel_pc) {
  if (mapping == kNoId) {
    if (no_mapping_ == kNoId)
      no_mapping_ = InternMapping({});
    mapping = no_mapping_;
  }
  FrameTable& frames = trace_->frames;
  frame_index_.Prepare([&](uint32_t row) {
    return FrameHash(frames.name[row], frames.mapping[row], frames.rel_pc[row]);
  });
  uint32_t& row =
      frame_index_.Find(FrameHash(name, mapping, rel_pc), [&](uint32_t other) {
        return frames.rel_pc[other] == rel_pc && frames.mapping[other] == mapping &&
               frames.name[other] == name;
      });
  if (row == kNoId && frames.row_count() < kMaxRows) {
    row = static_cast<uint32_t>(frames.row_count());
    frames.name.push_back(name);
    frames.mapping.push_back(mapping);
    frames.rel_pc.push_back(rel_pc);
    frames.symbol_set.push_back(kNoId);
    frames.deobfuscated_name.push_back(kNoId);
    frames.type.push_back(kNoId);
    frame_index_.CountAdded();
  }
  return row;
}

uint32_t TraceBuilder::InternCallsite(uint32_t parent, uint32_t frame) {
  CallsiteTable& callsites = trace_->callsites;
  callsite_index_.Prepare([&](uint32_t row) {
    return CallsiteHash(callsites.parent[row], callsites.frame[row]);
  });
  uint32_t& row = callsite_index_.Find(CallsiteHash(parent, frame), [&](uint32_t other) {
    return callsites.parent[other] == parent && callsites.frame[other] == frame;
  });
  if (row == kNoId && callsites.row_count() < kMaxRows) {
    row = static_cast<uint32_t>(callsites.row_count());
    callsites.parent.push_back(parent);
    callsites.frame.push_back(frame);
    callsites.depth.push_back(parent == kNoId ? 0 : callsites.depth[parent] + 1);
    callsite_index_.CountAdded();
  }
  return row;
}

uint32_t TraceBuilder::InternStack(std::span<const uint32_t> frames) {
  StackTable& stacks = trace_->stacks;
  if (frames.empty())
    return kNoId;
  stack_index_.Prepare([&](uint32_t row) { return StackHash(stacks.FramesOf(row)); });
  uint32_t& row = stack_index_.Find(StackHash(frames), [&](uint32_t other) {
    const std::span<const uint32_t> present = stacks.FramesOf(other);
    return std::equal(present.begin(), present.end(), frames.begin(), frames.end());
  });
  if (row == kNoId && frames.size() <= kMaxRows - stacks.frames.size()) {
    row = static_cast<uint32_t>(stacks.row_count());
    stacks.frames.append(frames);
    stacks.end.push_back(static_cast<uint32_t>(stacks.frames.size()));
    stack_index_.CountAdded();
  }
  return row;
}

uint32_t TraceBuilder::InternWhole(std::span<const uint32_t> frames) {
  if (has_whole_stacks_)
    return InternStack(frames);
  uint32_t callsite = kNoId;
  for (const uint32_t frame : frames)
    callsite = InternCallsite(callsite, frame);
  return callsite;
}

// Stacks have numbers in the order in which they were read, so callsites get theirs in
// that order, too. Those in outlines (import/perfetto/apply_deobfuscation.cc) are gone.
bool TraceBuilder::UseCallsites(const std::atomic<bool>& cancelled) {
  if (!has_whole_stacks_)
    return true;
  decoding_->Run();
  has_whole_stacks_ = false;
  const StackTable& stacks = trace_->stacks;
  Column<uint32_t> callsites;  // by stack
  StackInterner interner(this);
  const auto flush = [&] {
    interner.Flush(
        [&](uint64_t /*row*/, uint32_t callsite) { callsites.push_back(callsite); });
  };
  for (uint32_t row = 0; row < stacks.row_count(); ++row) {
    for (const uint32_t frame : stacks.FramesOf(row))
      interner.Push(frame);
    if (interner.End(row)) {
      flush();
      // What was interned is found again by who tries again.
      has_whole_stacks_ = cancelled;
      if (has_whole_stacks_)
        return false;
    }
  }
  flush();
  for (Column<uint32_t>* rows :
       {&trace_->allocations.callsite, &trace_->estimates.callsite,
        &trace_->cumulative.callsite, &trace_->shapes.callsite,
        &trace_->live_blocks.callsite}) {
    for (uint32_t& row : *rows)
      row = callsites[row];
  }
  trace_->stacks = {};
  stack_index_ = RowIndex();
  return true;
}

void TraceBuilder::PrefetchCallsite(uint32_t parent, uint32_t frame) const {
  callsite_index_.Prefetch(CallsiteHash(parent, frame));
}

uint32_t TraceBuilder::LikelyCallsite(uint32_t parent, uint32_t frame) const {
  const uint32_t callsite = callsite_index_.LikelyRow(CallsiteHash(parent, frame));
  if (callsite != kNoId) {
    __builtin_prefetch(&trace_->callsites.parent[callsite]);
    __builtin_prefetch(&trace_->callsites.frame[callsite]);
  }
  return callsite;
}

bool TraceBuilder::IsCallsite(uint32_t callsite, uint32_t parent, uint32_t frame) const {
  return callsite != kNoId && trace_->callsites.parent[callsite] == parent &&
         trace_->callsites.frame[callsite] == frame;
}

uint32_t TraceBuilder::AddSymbol(uint32_t set,
                                 StringId name,
                                 StringId source_file,
                                 uint32_t line) {
  SymbolTable& symbols = trace_->symbols;
  if (symbols.row_count() >= kMaxRows)
    return set;
  if (set == kNoId)
    set = static_cast<uint32_t>(symbols.row_count());
  symbols.set.push_back(set);
  symbols.name.push_back(name);
  symbols.source_file.push_back(source_file);
  symbols.line.push_back(line);
  return set;
}

uint32_t TraceBuilder::BeginDump(const ImportedDump& dump) {
  if (trace_->dumps.size() < kMaxDumps) {  // what follows is added to the last one
    trace_->dumps.push_back(dump);
    ImportedDump& added = trace_->dumps.back();
    added.first_allocation = added.first_estimate = 0;
    added.allocation_count = added.estimate_count = 0;
  }
  const auto id = static_cast<uint32_t>(trace_->dumps.size() - 1);
  BeginRows(id);
  return id;
}

void TraceBuilder::BeginRows(uint32_t dump) {
  rows_dump_ = dump;
  ImportedDump& rows = trace_->dumps[dump];
  if (rows.allocation_count == 0)
    rows.first_allocation = static_cast<uint32_t>(trace_->allocations.row_count());
  if (rows.estimate_count == 0)
    rows.first_estimate = static_cast<uint32_t>(trace_->estimates.row_count());
}

void TraceBuilder::AddAllocation(uint32_t callsite, int64_t count, int64_t size) {
  AllocationTable& rows = trace_->allocations;
  if ((count == 0 && size == 0) || rows.row_count() >= kMaxRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.count.push_back(count);
  rows.size.push_back(size);
  ++trace_->dumps[rows_dump_].allocation_count;
}

void TraceBuilder::AddEstimate(uint32_t callsite, const CallsiteEstimate& estimate) {
  EstimateTable& rows = trace_->estimates;
  if (!needs_estimates_ || rows.row_count() >= kMaxRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.live_bytes_error.push_back(estimate.live_bytes_error);
  rows.live_count_error.push_back(estimate.live_count_error);
  rows.allocated_bytes_error.push_back(estimate.allocated_bytes_error);
  rows.alloc_count_error.push_back(estimate.alloc_count_error);
  rows.peak_bytes.push_back(estimate.peak_bytes);
  rows.peak_count.push_back(estimate.peak_count);
  ++trace_->dumps[rows_dump_].estimate_count;
}

void TraceBuilder::AddCumulative(uint32_t callsite,
                                 const CallsiteTotalsAtEnd& totals,
                                 const CallsiteEstimate& estimate) {
  CumulativeTable& rows = trace_->cumulative;
  if (rows.row_count() >= kMaxRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.alloc_size.push_back(totals.alloc_size);
  rows.alloc_count.push_back(totals.alloc_count);
  rows.free_size.push_back(totals.free_size);
  rows.free_count.push_back(totals.free_count);
  rows.live_size_error.push_back(estimate.live_bytes_error);
  rows.live_count_error.push_back(estimate.live_count_error);
  rows.alloc_size_error.push_back(estimate.allocated_bytes_error);
  rows.alloc_count_error.push_back(estimate.alloc_count_error);
}

// The estimates are the state at the dump already.
void TraceBuilder::CopyEstimates(const EstimateTable& from, const ImportedDump& dump) {
  for (size_t i = 0; i < dump.estimate_count; ++i) {
    const size_t row = dump.first_estimate + i;
    AddEstimate(from.callsite[row],
                {.live_bytes_error = from.live_bytes_error[row],
                 .live_count_error = from.live_count_error[row],
                 .allocated_bytes_error = from.allocated_bytes_error[row],
                 .alloc_count_error = from.alloc_count_error[row],
                 .peak_bytes = from.peak_bytes[row],
                 .peak_count = from.peak_count[row]});
  }
}

void TraceBuilder::KeepLastDumps() {
  // Callsite and whether freed: of a dump there is a row for each.
  using Sums = std::map<std::pair<uint32_t, bool>, std::pair<int64_t, int64_t>>;

  struct Heap {
    uint32_t last = 0;
    Sums sums;  // count and size
  };

  std::map<std::pair<uint32_t, StringId>, Heap> heaps;
  const AllocationTable allocations = std::exchange(trace_->allocations, {});
  const EstimateTable estimates = std::exchange(trace_->estimates, {});
  const std::vector<ImportedDump> dumps = std::exchange(trace_->dumps, {});
  const std::vector<Quality> qualities = std::exchange(trace_->qualities, {});
  const std::vector<ThreadTotals> threads = std::exchange(trace_->thread_totals, {});
  for (uint32_t id = 0; id < dumps.size(); ++id) {
    Heap& heap = heaps[{dumps[id].upid, dumps[id].heap_name}];
    heap.last = id;
    for (size_t i = 0; i < dumps[id].allocation_count; ++i) {
      const size_t row = dumps[id].first_allocation + i;
      const bool is_freed = allocations.count[row] < 0 || allocations.size[row] < 0;
      auto& [count, size] = heap.sums[{allocations.callsite[row], is_freed}];
      count += allocations.count[row];
      size += allocations.size[row];
    }
  }
  for (const auto& [name, heap] : heaps) {
    const ImportedDump& last = dumps[heap.last];
    ImportedDump& dump = trace_->dumps[BeginDump(last)];
    if (last.quality < qualities.size()) {
      dump.quality = static_cast<uint32_t>(trace_->qualities.size());
      trace_->qualities.push_back(qualities[last.quality]);
    }
    for (const auto& [row, sum] : heap.sums)
      AddAllocation(row.first, sum.first, sum.second);
    CopyEstimates(estimates, last);
    const auto [begin, end] =
        std::equal_range(threads.begin(), threads.end(), ThreadTotals{.dump = heap.last},
                         [](const auto& a, const auto& b) { return a.dump < b.dump; });
    for (auto thread = begin; thread != end; ++thread) {
      trace_->thread_totals.push_back(*thread);
      trace_->thread_totals.back().dump = static_cast<uint32_t>(trace_->dumps.size() - 1);
    }
  }
  trace_->cumulative = {};
  trace_->shapes = {};
  trace_->live_blocks = {};
  trace_->counters.clear();
}

void TraceBuilder::AddLiveBlock(uint32_t callsite, uint64_t address, uint64_t size) {
  LiveBlockTable& rows = trace_->live_blocks;
  if (!needs_estimates_ || rows.row_count() >= kMaxRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.address.push_back(address);
  rows.size.push_back(size);
}

void TraceBuilder::AddShape(uint32_t callsite, const CallsiteShape& shape) {
  ShapeTable& rows = trace_->shapes;
  if (!needs_estimates_ || rows.row_count() >= kMaxRows)
    return;
  rows.dump.push_back(rows_dump_);
  rows.callsite.push_back(callsite);
  rows.kind.push_back(static_cast<uint8_t>(shape.kind));
  rows.log2.push_back(shape.log2);
  rows.count.push_back(shape.count);
  rows.size.push_back(shape.size);
  rows.count_error.push_back(shape.count_error);
  rows.size_error.push_back(shape.size_error);
  rows.utid.push_back(shape.utid);
}

}  // namespace heapprofd
