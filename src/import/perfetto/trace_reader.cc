#include "import/perfetto/trace_reader.h"

#include "import/perfetto/trace_importer.h"

namespace heapprofd {

Result<ReadReport> ReadTrace(ByteSource& source,
                             const std::string& name,
                             TraceBuilder& builder) {
  builder.processes().BeginSource();
  const size_t known_qualities = builder.trace().qualities.size();
  TraceImporter importer(&builder, &source);
  HPD_TRY_ASSIGN(ReadReport report,
                 ReadPackets(source, name,
                             [&](std::string_view packet) { importer.Import(packet); }));
  importer.Finish();
  if (!report.damage.empty())
    builder.trace().stats.Add(StatId::kTraceTruncatedBytes, 0,
                              static_cast<int64_t>(report.lost_bytes));
  // Each dump of ours has its quality, and each recording of ours that was not cut, between
  // two packets even, has its end.
  const bool is_ours = builder.trace().qualities.size() > known_qualities;
  if (report.damage.empty() && is_ours && !importer.has_end())
    report.damage = "the end of its recording is missing";
  return report;
}

Result<ReadReport> ReadTrace(const std::string& path, TraceBuilder& builder) {
  HPD_TRY_ASSIGN(std::unique_ptr<FileSource> file, FileSource::Open(path));
  return ReadTrace(*file, path, builder);
}

}  // namespace heapprofd
