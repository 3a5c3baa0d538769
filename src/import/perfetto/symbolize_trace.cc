#include "import/perfetto/symbolize_trace.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "import/perfetto/interned_tables.h"

namespace heapprofd {

namespace {

enum class Symbols : uint8_t { kNone, kNames, kLines };

Symbols SymbolsOf(const ImportedTrace& trace, size_t frame) {
  const uint32_t set = trace.frames.symbol_set[frame];
  if (set == kNoId)
    return Symbols::kNone;
  const size_t end = trace.symbols.EndOf(set);
  for (size_t row = set; row < end; ++row) {
    if (trace.symbols.source_file[row] != kNoId)
      return Symbols::kLines;
  }
  return Symbols::kNames;
}

TraceCode FramesWith(Symbols symbols, const ImportedTrace& trace) {
  TraceCode code;
  std::map<uint32_t, MappingId> mappings;
  std::map<std::pair<MappingId, uint64_t>, bool> is_known;
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    const uint32_t source = trace.frames.mapping[row];
    const ImportedMapping& mapping = trace.mappings[source];
    if (mapping.build_id == kEmptyString || SymbolsOf(trace, row) != symbols)
      continue;
    const auto [entry, is_new] =
        mappings.try_emplace(source, static_cast<MappingId>(code.mappings.size()));
    if (is_new)
      code.mappings.push_back(MappingOfProfile(trace, mapping));
    const uint64_t rel_pc = trace.frames.rel_pc[row];
    if (!std::exchange(is_known[{entry->second, rel_pc}], true))
      code.frames.push_back({.mapping = entry->second, .rel_pc = rel_pc, .lines = {}});
  }
  return code;
}

// Another name is not better than the one that the trace has.
void KeepSourceLines(TraceCode& code) {
  for (Frame& frame : code.frames) {
    if (std::ranges::all_of(frame.lines,
                            [](const SourceLine& line) { return line.file.empty(); }))
      frame.lines.clear();
  }
}

SymbolizeSummary Summarize(const SymbolizeReport& report) {
  SymbolizeSummary summary;
  for (const ModuleSymbols& module : report.modules) {
    summary.frames += module.frames;
    summary.unnamed_frames += module.unnamed_frames;
    if (!module.error.empty())
      summary.messages.push_back(module.error);
  }
  return summary;
}

// Of a module's name and build id, and an address in it.
using SetOfAddress =
    std::map<std::pair<std::pair<StringId, StringId>, uint64_t>, uint32_t>;

void AddSymbols(const TraceCode& code, TraceBuilder& builder, SetOfAddress& sets) {
  for (const Frame& frame : code.frames) {
    if (frame.lines.empty())
      continue;
    const Mapping& mapping = code.mappings[frame.mapping];
    uint32_t set = kNoId;
    for (const SourceLine& line : frame.lines) {
      const std::string_view name =
          line.function.empty() ? line.system_name : line.function;
      set = builder.AddSymbol(set, builder.Intern(name),
                              line.file.empty() ? kNoId : builder.Intern(line.file),
                              line.file.empty() ? 0 : line.line);
    }
    sets[{{builder.Intern(MappingName(mapping.path)),
           builder.Intern(BuildIdText(mapping.build_id))},
          frame.rel_pc}] = set;
  }
}

}  // namespace

// Both kinds at once: they lie in the same files.
FoundSymbols FindSymbols(const ImportedTrace& trace, const SymbolizeOptions& options) {
  FoundSymbols found{.unnamed = FramesWith(Symbols::kNone, trace),
                     .named = FramesWith(Symbols::kNames, trace),
                     .summary = {}};
  const ProfileToSymbolize wanted[] = {{.code = found.unnamed.table(), .open_module = {}},
                                       {.code = found.named.table(), .open_module = {}}};
  found.summary = Summarize(SymbolizeProfiles(wanted, options).front());
  KeepSourceLines(found.named);
  return found;
}

void ApplySymbols(const FoundSymbols& found, TraceBuilder& builder) {
  ImportedTrace& trace = builder.trace();
  SetOfAddress sets;
  AddSymbols(found.unnamed, builder, sets);
  AddSymbols(found.named, builder, sets);
  if (sets.empty())
    return;
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    if (SymbolsOf(trace, row) == Symbols::kLines)
      continue;
    const ImportedMapping& mapping = trace.mappings[trace.frames.mapping[row]];
    const auto set =
        sets.find({{mapping.name, mapping.build_id}, trace.frames.rel_pc[row]});
    if (set != sets.end())
      trace.frames.symbol_set[row] = set->second;
  }
}

}  // namespace heapprofd
