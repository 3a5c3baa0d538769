#include "import/perfetto/symbolize_trace.h"

#include <map>
#include <string_view>
#include <utility>

#include "import/perfetto/interned_tables.h"

namespace heapprofd {

UnnamedCode FramesToSymbolize(const ImportedTrace& trace) {
  UnnamedCode code;
  std::map<uint32_t, MappingId> mappings;
  std::map<std::pair<MappingId, uint64_t>, bool> is_known;
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    const uint32_t source = trace.frames.mapping[row];
    const ImportedMapping& mapping = trace.mappings[source];
    if (trace.frames.symbol_set[row] != kNoId || mapping.build_id == kEmptyString)
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

void ApplySymbols(const UnnamedCode& code, TraceBuilder& builder) {
  ImportedTrace& trace = builder.trace();
  using Address = std::pair<std::pair<StringId, StringId>, uint64_t>;  // module, rel_pc
  std::map<Address, uint32_t> sets;
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
  if (sets.empty())
    return;
  for (size_t row = 0; row < trace.frames.row_count(); ++row) {
    if (trace.frames.symbol_set[row] != kNoId)
      continue;
    const ImportedMapping& mapping = trace.mappings[trace.frames.mapping[row]];
    const auto set =
        sets.find({{mapping.name, mapping.build_id}, trace.frames.rel_pc[row]});
    if (set != sets.end())
      trace.frames.symbol_set[row] = set->second;
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

}  // namespace heapprofd
