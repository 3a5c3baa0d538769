#include "cli/open_traces.h"

#include <algorithm>

#include "cli/load_trace.h"
#include "hprof/graph_tables.h"
#include "import/import_file.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

Status ImportHeapDumps(const std::string& path,
                       TraceBuilder& builder,
                       hprof::GraphContentsList* contents,
                       std::vector<std::string>* warnings) {
  std::vector<std::string> notes;
  HPD_TRY(hprof::ImportDumps(path, &builder, contents, &notes));
  for (std::string& note : notes)
    warnings->push_back(note.insert(0, path + ": "));
  return {};
}

}  // namespace

Result<std::unique_ptr<TraceDatabase>> OpenTraces(
    const std::vector<std::string>& paths,
    const std::string& tool,
    const std::function<void(const std::string&)>& warn,
    StackForm form,
    bool keeps_contents) {
  auto trace = std::make_unique<ImportedTrace>();
  auto builder = std::make_unique<TraceBuilder>(trace.get());
  builder->DeferDecoding();
  if (form == StackForm::kWhole) {
    builder->ReadWholeStacks();
    builder->decoding().BeginMeanwhile();
  } else {
    ReturnFreedMemory();
  }
  std::vector<std::string> warnings;
  std::vector<std::string> others;
  hprof::GraphContentsList contents;
  for (const std::string& path : paths) {
    if (hprof::IsDump(path))
      HPD_TRY(ImportHeapDumps(path, *builder, keeps_contents ? &contents : nullptr,
                              &warnings));
    else
      others.push_back(path);
  }
  if (!others.empty())
    HPD_TRY(ImportFiles(others, *builder, &warnings));
  std::for_each(warnings.begin(), warnings.end(), warn);
  HPD_TRY(SymbolizeLoaded(tool, *builder));
  HPD_TRY(DeobfuscateLoaded(tool, *builder));
  return TraceDatabase::Create(std::move(trace),
                               {std::move(builder), warn, std::move(contents)});
}

Result<std::unique_ptr<TraceDatabase>> OpenOwnTrace(
    ByteSource& source,
    const std::string& name,
    const std::function<void(const std::string&)>& warn,
    const std::string& tool) {
  auto trace = std::make_unique<ImportedTrace>();
  auto builder = std::make_unique<TraceBuilder>(trace.get());
  builder->DeferDecoding();
  builder->ReadWholeStacks();
  builder->decoding().BeginMeanwhile();
  std::vector<std::string> warnings;
  HPD_TRY(ImportSource(source, name, *builder, &warnings));
  std::for_each(warnings.begin(), warnings.end(), warn);
  if (!tool.empty()) {
    HPD_TRY(SymbolizeLoaded(tool, *builder));
    HPD_TRY(DeobfuscateLoaded(tool, *builder));
  }
  return TraceDatabase::Create(std::move(trace), {std::move(builder), warn, {}});
}

}  // namespace heapprofd
