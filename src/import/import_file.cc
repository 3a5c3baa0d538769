#include "import/import_file.h"

#include <malloc.h>

#include <algorithm>
#include <vector>

#include "import/formats.h"
#include "import/perfetto/trace_reader.h"
#include "import/unknown_format.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

Result<std::string> HeadOf(InflatingSource& source) {
  std::string head(kFormatHead, '\0');
  HPD_TRY_ASSIGN(const size_t count, source.ReadFully(head));
  head.resize(count);
  return head;
}

Result<ImportReport> ImportTrace(ByteSource& source,
                                 const std::string& name,
                                 TraceBuilder& builder) {
  HPD_TRY_ASSIGN(ReadReport read, ReadTrace(source, name, builder));
  return ImportReport{.bytes = read.bytes, .damage = std::move(read.damage)};
}

// Why a dump was empty was so far true. What came behind nobody knows.
void ForgetReasons(TraceBuilder& builder) {
  ImportedTrace& trace = builder.trace();
  trace.is_cut = true;
  const uint32_t first = trace.file_ends.empty() ? 0 : trace.file_ends.back();
  for (ImportedDump& dump : trace.dumps) {
    if (dump.upid >= first)
      dump.reason = kNoId;
  }
}

void AddFile(const std::string& path,
             const ImportReport& report,
             TraceBuilder& builder,
             std::vector<std::string>* warnings) {
  if (!report.damage.empty()) {
    warnings->push_back(path + " is incomplete: " + report.damage +
                        "; what comes before is used");
    ForgetReasons(builder);
  }
  if (report.bad_records > 0)
    warnings->push_back(path + ": " + std::to_string(report.bad_records) +
                        (report.bad_records == 1
                             ? " record makes no sense and was left out"
                             : " records make no sense and were left out"));
  if (report.cut_stacks > 0)
    warnings->push_back(path + ": " + std::to_string(report.cut_stacks) +
                        (report.cut_stacks == 1
                             ? " stack is deeper than 4096 functions and lacks its"
                             : " stacks are deeper than 4096 functions and lack their") +
                        " outermost ones");
  const std::string prefix = path + ": ";
  for (const std::string& note : report.notes)
    warnings->push_back(prefix + note);
  builder.trace().file_ends.push_back(
      static_cast<uint32_t>(builder.trace().processes.size()));
}

void AddTraceWarnings(TraceBuilder& builder, std::vector<std::string>* warnings) {
  for (std::string& warning : TraceWarnings(builder.trace().stats))
    warnings->push_back(std::move(warning));
}

Result<ImportReport> ImportAs(FileFormat format,
                              ByteSource& source,
                              const std::string& name,
                              TraceBuilder& builder) {
  if (format != FileFormat::kPerfettoTrace)
    builder.decoding().Run();  // the others add their rows at once
  switch (format) {
    case FileFormat::kPprof:
      return ImportPprof(source, name, builder);
    case FileFormat::kFolded:
      return ImportFolded(source, name, builder);
    case FileFormat::kHeaptrack:
      return ImportHeaptrack(source, name, builder);
    default:
      return ImportTrace(source, name, builder);
  }
}

}  // namespace

Result<FileFormat> FormatOfFile(const std::string& path) {
  HPD_TRY_ASSIGN(std::unique_ptr<FileSource> file, FileSource::Open(path));
  InflatingSource inflated(file.get());
  HPD_TRY_ASSIGN(const std::string head, HeadOf(inflated));
  return DetectFormat(head);
}

Result<ImportReport> ImportBytes(ByteSource& source,
                                 const std::string& name,
                                 TraceBuilder& builder) {
  InflatingSource inflated(&source);
  HPD_TRY_ASSIGN(std::string head, HeadOf(inflated));
  const FileFormat format = DetectFormat(head);
  if (format == FileFormat::kUnknown)
    return UnknownFormat(name, head);
  PrefixedSource whole(std::move(head), &inflated);
  builder.processes().BeginSource();
  HPD_TRY_ASSIGN(ImportReport report, ImportAs(format, whole, name, builder));
  if (report.damage.empty() && inflated.is_truncated())
    report.damage = "its compressed data end too early";
  return report;
}

Result<ImportReport> ImportFile(const std::string& path, TraceBuilder& builder) {
  HPD_TRY_ASSIGN(std::unique_ptr<FileSource> file, FileSource::Open(path));
  return ImportBytes(*file, path == "-" ? "standard input" : path, builder);
}

void ReturnFreedMemory() {
  // Parts of packets are larger. Without this malloc keeps them: it takes the first one
  // that is freed for a sign that more of its size will be wanted.
  constexpr int kOwnMapping = 256 << 10;
  mallopt(M_MMAP_THRESHOLD, kOwnMapping);
}

Status ImportSource(ByteSource& source,
                    const std::string& name,
                    TraceBuilder& builder,
                    std::vector<std::string>* warnings) {
  HPD_TRY_ASSIGN(const ImportReport report, ImportBytes(source, name, builder));
  AddFile(name, report, builder, warnings);
  AddTraceWarnings(builder, warnings);
  return {};
}

Status ImportFiles(std::span<const std::string> paths,
                   TraceBuilder& builder,
                   std::vector<std::string>* warnings) {
  for (const std::string& path : paths) {
    HPD_TRY_ASSIGN(const ImportReport report, ImportFile(path, builder));
    AddFile(path, report, builder, warnings);
  }
  AddTraceWarnings(builder, warnings);
  return {};
}

uint32_t AddNamedProcess(std::string_view name, TraceBuilder& builder) {
  std::vector<ImportedProcess>& processes = builder.trace().processes;
  ImportedProcess process;
  process.name = builder.Intern(name);
  processes.push_back(process);
  return static_cast<uint32_t>(processes.size() - 1);
}

}  // namespace heapprofd
