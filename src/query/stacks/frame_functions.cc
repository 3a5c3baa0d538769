#include "query/stacks/frame_functions.h"

#include "symbolize/demangle.h"

namespace heapprofd {

FrameFunctions::FrameFunctions(const ImportedTrace& trace, NameStyle names)
    : trace_(trace), style_(names), demangled_(std::make_shared<StringPool>()) {
  if (names == NameStyle::kDemangled)
    name_ids_.assign(trace.strings.size(), kNoId);
  runs_.resize(trace.frames.row_count(), {});
}

uint32_t FrameFunctions::CountAt(uint32_t frame) const {
  const uint32_t set = trace_.frames.symbol_set[frame];
  const size_t end = set == kNoId ? 0 : trace_.symbols.EndOf(set);
  return end > set ? static_cast<uint32_t>(end - set) : 1;
}

std::shared_ptr<const StringPool> FrameFunctions::names() const {
  return style_ == NameStyle::kDemangled
             ? std::shared_ptr<const StringPool>(demangled_)
             : std::shared_ptr<const StringPool>(demangled_, &trace_.strings);
}

void FrameFunctions::Add(uint32_t frame) {
  const uint32_t count = CountAt(frame);
  runs_[frame] = {static_cast<uint32_t>(functions_.size()), count};
  const FrameTable& frames = trace_.frames;
  const uint32_t mapping = frames.mapping[frame];
  TreeFunction function;
  if (mapping != kNoId)
    function.mapping_name = trace_.mappings[mapping].name;
  const uint32_t set = frames.symbol_set[frame];
  for (uint32_t i = 0; i < count; ++i) {
    StringId name = frames.ShownName(frame);
    if (set != kNoId && trace_.symbols.EndOf(set) > set) {
      name = trace_.symbols.name[set + i];
      function.source_file = trace_.symbols.source_file[set + i];
      function.line = trace_.symbols.line[set + i];
    }
    function.name = NameId(name);
    functions_.push_back(table_.Intern(function));
  }
}

// In demangled_ when names are demangled, else in the trace.
StringId FrameFunctions::NameId(StringId name) {
  if (style_ == NameStyle::kAsRecorded)
    return name;
  if (name >= name_ids_.size())
    return demangled_->Intern("unknown");
  StringId& id = name_ids_[name];
  if (id == kNoId) {
    const std::string_view text = trace_.Text(name);
    id = demangled_->Intern(text.empty() ? "unknown" : Demangle(text));
  }
  return id;
}

}  // namespace heapprofd
