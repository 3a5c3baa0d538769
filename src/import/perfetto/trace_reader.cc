#include "import/perfetto/trace_reader.h"

#include "import/perfetto/trace_importer.h"

namespace heapprofd {

Result<ReadReport> ReadTrace(ByteSource& source,
                             const std::string& name,
                             TraceBuilder& builder) {
  builder.processes().BeginSource();
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

}  // namespace heapprofd
