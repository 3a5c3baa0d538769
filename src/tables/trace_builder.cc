#include "tables/trace_builder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tables/decode_queue.h"
#include "tables/stack_interner.h"

namespace heapprofd {
namespace {

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

uint64_t StackHash(std::span<const uint32_t> frames) {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(frames.data()), frames.size_bytes()});
}

}  // namespace

TraceBuilder::TraceBuilder(ImportedTrace* trace)
    : trace_(trace),
      processes_(trace),
      dumps_(trace),
      callsites_(&trace->callsites),
      decoding_(std::make_unique<DecodeQueue>(&trace->stats)) {}

TraceBuilder::~TraceBuilder() = default;

void TraceBuilder::DecodeUnlessDeferred() {
  if (!defers_decoding_)
    decoding_->Run();
}

uint32_t TraceBuilder::InternMapping(const ImportedMapping& mapping) {
  std::vector<ImportedMapping>& rows = trace_->mappings;
  mapping_index_.Prepare([&](uint32_t row) { return HashOf(rows[row]); });
  uint32_t& row = mapping_index_.Find(
      HashOf(mapping), [&](uint32_t other) { return AreEqual(rows[other], mapping); });
  if (row == kNoId && rows.size() < kMostTableRows) {
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
  if (row == kNoId && frames.row_count() < kMostTableRows) {
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

uint32_t TraceBuilder::InternStack(std::span<const uint32_t> frames) {
  StackTable& stacks = trace_->stacks;
  if (frames.empty())
    return kNoId;
  const uint64_t hash = StackHash(frames);
  stack_index_.Prepare([&](uint32_t row) { return stack_hashes_[row]; });
  uint32_t& row = stack_index_.Find(hash, [&](uint32_t other) {
    const std::span<const uint32_t> present = stacks.FramesOf(other);
    return std::equal(present.begin(), present.end(), frames.begin(), frames.end());
  });
  if (row == kNoId && frames.size() <= kMostTableRows - stacks.frames.size()) {
    row = static_cast<uint32_t>(stacks.row_count());
    stacks.frames.append(frames);
    stacks.end.push_back(static_cast<uint32_t>(stacks.frames.size()));
    stack_hashes_.push_back(hash);
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
      row = row == kNoId ? kNoId : callsites[row];
  }
  trace_->stacks = {};
  stack_index_ = RowIndex();
  return true;
}

uint32_t TraceBuilder::AddSymbol(uint32_t set,
                                 StringId name,
                                 StringId source_file,
                                 uint32_t line) {
  SymbolTable& symbols = trace_->symbols;
  if (symbols.row_count() >= kMostTableRows)
    return set;
  if (set == kNoId)
    set = static_cast<uint32_t>(symbols.row_count());
  symbols.set.push_back(set);
  symbols.name.push_back(name);
  symbols.source_file.push_back(source_file);
  symbols.line.push_back(line);
  return set;
}

}  // namespace heapprofd
