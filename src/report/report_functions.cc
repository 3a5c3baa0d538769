#include "report/report_functions.h"

#include "profile/allocator_internals.h"
#include "report/columns.h"

namespace heapprofd {

ReportFunctions::ReportFunctions(const ImportedTrace& trace)
    : trace_(trace), functions_(2, Function{}) {
  for (size_t row = 0; row < functions_.size(); ++row)
    index_.CountAdded();
}

// Files are few, and those of many functions.
uint32_t ReportFunctions::TraceText(StringId id) {
  if (id >= trace_.strings.size())
    return kEmptyString;
  if (id >= of_trace_.size())
    of_trace_.resize(trace_.strings.size(), kNoId);
  uint32_t& text = of_trace_[id];
  if (text == kNoId)
    text = texts_.Intern(trace_.Text(id));
  return text;
}

uint32_t ReportFunctions::Row(const StringPool& names, const TreeFunction& function) {
  const Function added = {.name = texts_.Intern(names.Get(function.name)),
                          .module = TraceText(function.mapping_name),
                          .file = TraceText(function.source_file),
                          .line = function.line};
  index_.Prepare([this](uint32_t row) { return HashOf(functions_[row]); });
  uint32_t& row = index_.Find(HashOf(added), [&](uint32_t other) {
    return other > kLeftOut && functions_[other] == added;
  });
  if (row == RowIndex::kNone) {
    row = static_cast<uint32_t>(functions_.size());
    functions_.push_back(added);
    index_.CountAdded();
  }
  return row;
}

size_t ReportFunctions::TextBytes() const {
  size_t bytes = 0;
  for (StringId id = 0; id < texts_.size(); ++id)
    bytes += texts_.Get(id).size();
  return bytes;
}

void ReportFunctions::AppendTo(std::string& out) const {
  NumberColumnWriter lengths;
  std::string bytes;
  for (StringId id = 0; id < texts_.size(); ++id) {
    lengths.Add(texts_.Get(id).size());
    bytes += texts_.Get(id);
  }
  AppendNumber(static_cast<uint32_t>(texts_.size()), out);
  lengths.AppendTo(out);
  AppendBlock(bytes, out);
  NumberColumnWriter names;
  NumberColumnWriter modules;
  NumberColumnWriter files;
  NumberColumnWriter lines;
  NumberColumnWriter flags;
  for (const Function& function : functions_) {
    names.Add(function.name);
    modules.Add(function.module);
    files.Add(function.file);
    lines.Add(function.line);
    flags.Add(IsAllocatorInternal(texts_.Get(function.name)) ? kIsAllocator : 0);
  }
  AppendNumber(static_cast<uint32_t>(functions_.size()), out);
  for (const NumberColumnWriter* column : {&names, &modules, &files, &lines, &flags})
    column->AppendTo(out);
}

}  // namespace heapprofd
