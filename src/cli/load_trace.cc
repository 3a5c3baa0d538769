#include "cli/load_trace.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "base/print.h"
#include "cli/results/quality_words.h"
#include "import/perfetto/apply_deobfuscation.h"
#include "import/perfetto/symbolize_trace.h"
#include "import/perfetto/trace_reader.h"

namespace heapprofd {
namespace {

void Warn(const std::string& tool, const std::string& message) {
  Print(stderr, "%s: %s\n", tool.c_str(), message.c_str());
}

}  // namespace

Status LoadTrace(const std::string& tool,
                 const std::string& path,
                 TraceBuilder& builder) {
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
