#include "report/report_functions.h"

#include "profile/allocator_internals.h"
#include "report/columns.h"

namespace heapprofd {

ReportFunctions::ReportFunctions(const ImportedTrace& trace)
    : trace_(trace), functions_(2, Function{}) {}

uint32_t ReportFunctions::Text(std::string_view text) {
  return texts_.Intern(text);
}

uint32_t ReportFunctions::Row(const FlameTree& tree, const TreeFunction& function) {
  const Function row = {.name = Text(tree.names->Get(function.name)),
                        .module = Text(trace_.Text(function.mapping_name)),
                        .file = Text(trace_.Text(function.source_file)),
                        .line = function.line};
  const auto [at, is_new] = rows_.emplace(row, functions_.size());
  if (is_new)
    functions_.push_back(row);
  return at->second;
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
