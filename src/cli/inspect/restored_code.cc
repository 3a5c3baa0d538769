#include "cli/inspect/restored_code.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "import/perfetto/interned_tables.h"
#include "symbolize/demangle.h"

namespace heapprofd {
namespace {

// Of the innermost function of a frame the linker's name is known.
SourceLine LineOf(const ImportedTrace& trace,
                  uint32_t frame,
                  uint32_t symbol,
                  bool is_last) {
  SourceLine line;
  line.function = Demangle(trace.Text(trace.symbols.name[symbol]));
  if (is_last && trace.frames.deobfuscated_name[frame] != kNoId)
    line.function = std::string(trace.Text(trace.frames.deobfuscated_name[frame]));
  else if (is_last && trace.frames.name[frame] != kEmptyString)
    line.system_name = std::string(trace.Text(trace.frames.name[frame]));
  if (trace.symbols.source_file[symbol] != kNoId)
    line.file = std::string(trace.Text(trace.symbols.source_file[symbol]));
  line.line = trace.symbols.line[symbol];
  return line;
}

std::vector<SourceLine> LinesOf(const ImportedTrace& trace, uint32_t frame) {
  std::vector<SourceLine> lines;
  const uint32_t set = trace.frames.symbol_set[frame];
  if (set != kNoId) {
    const size_t end = trace.symbols.EndOf(set);
    for (size_t row = set; row < end; ++row)
      lines.push_back(LineOf(trace, frame, static_cast<uint32_t>(row), row + 1 == end));
    return lines;
  }
  const StringId deobfuscated = trace.frames.deobfuscated_name[frame];
  const StringId name = trace.frames.name[frame];
  if (deobfuscated == kNoId && name == kEmptyString)
    return lines;
  SourceLine& line = lines.emplace_back();
  if (deobfuscated != kNoId) {
    line.function = std::string(trace.Text(deobfuscated));
  } else {
    line.system_name = std::string(trace.Text(name));
    line.function = Demangle(trace.Text(name));
  }
  return lines;
}

}  // namespace

MappingId RestoredCode::MappingOf(uint32_t row) {
  const ImportedMapping& mapping = trace_.mappings[row];
  if (trace_.Text(mapping.name).empty() && mapping.end == 0)
    return kNoId;
  const auto [id, is_new] =
      mappings_.Insert(row, static_cast<MappingId>(to_.mappings.size()));
  if (is_new)
    to_.mappings.push_back(MappingOfProfile(trace_, mapping));
  return *id;
}

FrameId RestoredCode::FrameOf(uint32_t row) {
  const auto [id, is_new] = frames_.Insert(row, static_cast<FrameId>(to_.frames.size()));
  if (is_new) {
    const uint32_t mapping = trace_.frames.mapping[row];
    Frame frame{.mapping = MappingOf(mapping),
                .rel_pc = trace_.frames.rel_pc[row],
                .lines = LinesOf(trace_, row)};
    frame.is_allocator = is_allocator_[row];
    frame.is_label =
        FileName(trace_.Text(trace_.mappings[mapping].name)) == kLabelMappingName;
    to_.frames.push_back(std::move(frame));
  }
  return *id;
}

CallsiteId RestoredCode::AddCallsite(CallsiteId parent, uint32_t frame) {
  to_.callsites.push_back({.parent = parent, .frame = FrameOf(frame)});
  return static_cast<CallsiteId>(to_.callsites.size() - 1);
}

CallsiteId RestoredCode::CallsiteOf(uint32_t row) {
  return trace_.stacks.row_count() > 0 ? CallsiteOfStack(row) : CallsiteOfLeaf(row);
}

// What it shares with the stack before is not made again: recorders write stacks one
// beside the other that have most in common.
CallsiteId RestoredCode::CallsiteOfStack(uint32_t row) {
  if (row == kNoId)
    return kNoId;
  if (const CallsiteId* known = callsites_.Find(row))
    return *known;
  const std::span<const uint32_t> frames = trace_.stacks.FramesOf(row);
  const auto differs = std::ranges::mismatch(frames, last_stack_);
  last_callsites_.resize(static_cast<size_t>(differs.in1 - frames.begin()));
  for (const uint32_t frame : frames.subspan(last_callsites_.size()))
    last_callsites_.push_back(
        AddCallsite(last_callsites_.empty() ? kNoId : last_callsites_.back(), frame));
  last_stack_ = frames;
  const CallsiteId callsite = frames.empty() ? kNoId : last_callsites_.back();
  callsites_.Insert(row, callsite);
  return callsite;
}

CallsiteId RestoredCode::CallsiteOfLeaf(uint32_t row) {
  std::vector<uint32_t> missing;
  CallsiteId parent = kNoId;
  for (uint32_t at = row; at != kNoId; at = trace_.callsites.parent[at]) {
    if (const CallsiteId* known = callsites_.Find(at)) {
      parent = *known;
      break;
    }
    missing.push_back(at);
  }
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    parent = AddCallsite(parent, trace_.callsites.frame[*at]);
    callsites_.Insert(*at, parent);
  }
  return parent;
}

}  // namespace heapprofd
