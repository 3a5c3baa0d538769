#include "cli/open_traces.h"

#include <algorithm>

#include "cli/load_trace.h"
#include "import/import_file.h"

namespace heapprofd {

Result<std::unique_ptr<TraceDatabase>> OpenTraces(
    const std::vector<std::string>& paths,
    const std::string& tool,
    const std::function<void(const std::string&)>& warn) {
  ReturnFreedMemory();
  auto trace = std::make_unique<ImportedTrace>();
  auto builder = std::make_unique<TraceBuilder>(trace.get());
  builder->DeferDecoding();
  std::vector<std::string> warnings;
  HPD_TRY(ImportFiles(paths, *builder, &warnings));
  std::for_each(warnings.begin(), warnings.end(), warn);
  HPD_TRY(SymbolizeLoaded(tool, *builder));
  HPD_TRY(DeobfuscateLoaded(tool, *builder));
  return TraceDatabase::Create(std::move(trace), {std::move(builder), warn});
}

}  // namespace heapprofd
