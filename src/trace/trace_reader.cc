#include "trace/trace_reader.h"

#include "trace/trace_importer.h"

namespace heapprofd {

Result<ReadReport> ReadTrace(ByteSource& source,
                             const std::string& name,
                             TraceBuilder& builder) {
  builder.BeginSource();
  TraceImporter importer(&builder, &source);
  HPD_TRY_ASSIGN(ReadReport report,
                 ReadPackets(source, name,
                             [&](std::string_view packet) { importer.Import(packet); }));
  importer.Finish();
  if (!report.damage.empty())
    builder.trace().stats.Add(StatId::kTraceTruncatedBytes, 0,
                              static_cast<int64_t>(report.lost_bytes));
  return report;
}

Result<ReadReport> ReadTrace(const std::string& path, TraceBuilder& builder) {
  HPD_TRY_ASSIGN(std::unique_ptr<FileSource> file, FileSource::Open(path));
  return ReadTrace(*file, path, builder);
}

std::vector<std::string> TraceWarnings(const ImportedTrace& trace) {
  std::vector<std::string> warnings;
  for (const auto& [key, value] : trace.stats.values()) {
    const StatDescription& stat = StatDescriptions()[static_cast<size_t>(key.first)];
    if (stat.severity == StatSeverity::kInfo || value == 0)
      continue;
    std::string line = std::string(stat.name) + " " + std::to_string(value);
    if (stat.key == StatKey::kPid)
      line += " (pid " + std::to_string(key.second) + ")";
    warnings.push_back(line + ": " + stat.description);
  }
  return warnings;
}

}  // namespace heapprofd
