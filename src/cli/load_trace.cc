#include "cli/load_trace.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/results/quality_words.h"
#include "import/import_file.h"
#include "import/perfetto/apply_deobfuscation.h"
#include "import/perfetto/symbolize_trace.h"
#include "import/perfetto/trace_reader.h"

namespace heapprofd {
namespace {

void Warn(const std::string& tool, const std::string& message) {
  Print(stderr, "%s: %s\n", tool.c_str(), message.c_str());
}

std::string WordsOf(FileFormat format) {
  switch (format) {
    case FileFormat::kPprof:
      return "a pprof profile";
    case FileFormat::kFolded:
      return "folded stacks";
    case FileFormat::kHeaptrack:
      return "a heaptrack recording";
    default:
      return "";
  }
}

// A pprof profile begins as a trace does, and would be called a damaged one.
Status RefuseOtherProfiles(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return {};  // a pipe is read once
  const Result<FileFormat> format = FormatOfFile(path);
  const std::string words = format.ok() ? WordsOf(format.value()) : "";
  return words.empty() ? Status()
                       : Invalid("cannot read trace " + path + ": it is " + words +
                                 " and no trace; heap_profile show, export and report "
                                 "read it");
}

}  // namespace

Status LoadTrace(const std::string& tool,
                 const std::string& path,
                 TraceBuilder& builder) {
  HPD_TRY(RefuseOtherProfiles(path));
  builder.ReadForConversion();
  HPD_TRY_ASSIGN(const ReadReport report, ReadTrace(path, builder));
  if (!report.damage.empty())
    Warn(tool, "the trace is damaged behind " +
                   CountedExactly(report.packets, " packet", " packets") + ": " +
                   report.damage + "; what comes before is used");
  for (const std::string& warning : TraceWarnings(builder.trace().stats))
    Warn(tool, warning);
  return {};
}

Status SymbolizeLoaded(const std::string& tool, TraceBuilder& builder) {
  HPD_TRY_ASSIGN(const SymbolizeOptions options, SymbolizeOptions::FromEnvironment());
  if (options.binary_path.empty())
    return {};
  const FoundSymbols found = FindSymbols(builder.trace(), options);
  for (const std::string& message : found.summary.messages)
    Warn(tool, message);
  ApplySymbols(found, builder);
  return {};
}

Result<std::vector<DeobfuscationMap>> ReadProguardMaps(
    const std::string& tool, const std::vector<ProguardSource>& sources) {
  std::vector<DeobfuscationMap> maps;
  for (const ProguardSource& source : sources) {
    HPD_TRY_ASSIGN(ProguardMap map, ReadProguardMap(source));
    if (map.skipped_lines > 0)
      Warn(tool,
           "mapping file " + source.path + ": " +
               FormatCounted(static_cast<double>(map.skipped_lines), "line", "lines") +
               " left out, the first is " + map.first_problem);
    maps.push_back(std::move(map.map));
  }
  return maps;
}

Result<std::vector<ProguardSource>> ProguardSourcesFromEnvironment() {
  const char* const text = getenv("PERFETTO_PROGUARD_MAP");
  return ParseProguardSources(text != nullptr ? text : "");
}

Status DeobfuscateLoaded(const std::string& tool, TraceBuilder& builder) {
  HPD_TRY_ASSIGN(const std::vector<ProguardSource> sources,
                 ProguardSourcesFromEnvironment());
  HPD_TRY_ASSIGN(std::vector<DeobfuscationMap> maps, ReadProguardMaps(tool, sources));
  Deobfuscator deobfuscator;
  for (DeobfuscationMap& map : maps)
    deobfuscator.Add(std::move(map));
  ApplyDeobfuscation(builder, deobfuscator);
  return {};
}

}  // namespace heapprofd
