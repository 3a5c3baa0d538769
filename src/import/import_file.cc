#include "import/import_file.h"

#include <malloc.h>

#include <algorithm>
#include <vector>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

#include "import/formats.h"
#include "import/perfetto/trace_reader.h"
#include "tables/decode_queue.h"

namespace heapprofd {
namespace {

constexpr size_t kHeadBytes = 4096;

// A message of at most two small numbers, with its size in front: a pprof ValueType.
bool BeginsWithValueType(std::string_view bytes) {
  constexpr size_t kMaxValueType = 20;
  const size_t size = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]);
  if (size == 0 || size > kMaxValueType || bytes.size() <= size)
    return false;
  try {
    protozero::pbf_reader value_type(bytes.data() + 1, size);
    while (value_type.next()) {
      if (value_type.tag() > 2 ||
          value_type.wire_type() != protozero::pbf_wire_type::varint)
        return false;
      value_type.skip();
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

// Behind time, duration and period of a pprof profile, with which those of processors
// begin that Go writes.
std::string_view WithoutNumbers(std::string_view bytes) {
  constexpr std::string_view kTags = "\x48\x50\x60";
  while (!bytes.empty() && kTags.find(bytes[0]) != std::string_view::npos) {
    size_t end = 1;
    while (end < bytes.size() && (static_cast<unsigned char>(bytes[end]) & 0x80) != 0)
      ++end;
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return bytes;
}

// A message with its size in front, as far as it is known. The empty text with which
// pprof's texts begin is one, too.
bool BeginsWithMessage(std::string_view bytes) {
  try {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    const uint64_t size = protozero::decode_varint(&at, end);
    if (size > static_cast<uint64_t>(end - at))
      return true;
    protozero::pbf_reader message(at, size);
    while (message.next())
      message.skip();
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

// The first field of a Perfetto trace is a packet; that of a pprof profile is any field:
// most often a ValueType, the type of samples or, in what Go writes, that of the period.
FileFormat DetectProtobuf(std::string_view head) {
  constexpr char kSampleType = 0x0a;  // a packet, too
  constexpr char kPeriodType = 0x5a;
  constexpr std::string_view kOtherTags = "\x12\x1a\x22\x2a\x32";
  if (kOtherTags.find(head[0]) != std::string_view::npos &&
      BeginsWithMessage(head.substr(1)))
    return FileFormat::kPprof;
  const std::string_view type = WithoutNumbers(head);
  if (!type.empty() && (type[0] == kSampleType || type[0] == kPeriodType) &&
      BeginsWithValueType(type.substr(1)))
    return FileFormat::kPprof;
  return head[0] == kSampleType ? FileFormat::kPerfettoTrace : FileFormat::kUnknown;
}

// Of a line that goes on behind what is known of it: texts of programs have quotes.
bool MayBeginStack(std::string_view line) {
  const auto is_text = [](char c) { return static_cast<unsigned char>(c) >= ' '; };
  const size_t first = line.find(';');
  return first != std::string_view::npos &&
         line.substr(0, first).find('"') == std::string_view::npos &&
         std::all_of(line.begin(), line.end(), is_text);
}

// "frame;frame 123" in the first line that is no comment.
bool IsFolded(std::string_view head) {
  const bool is_cut = head.size() >= kHeadBytes;
  bool is_commented = false;
  while (head.starts_with('#') || head.starts_with('\n') || head.starts_with("\r\n")) {
    is_commented |= head.starts_with('#');
    head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
  }
  if (head.empty())
    return is_commented && is_cut;
  std::string_view line = head.substr(0, head.find('\n'));
  if (is_cut && line.size() == head.size())
    return MayBeginStack(line);
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == line.size())
    return line.size() == head.size() && line.find(';') != std::string_view::npos;
  const auto is_number = [](char c) { return (c >= '0' && c <= '9') || c == '-'; };
  const auto is_text = [](char c) { return static_cast<unsigned char>(c) >= ' '; };
  return std::all_of(line.begin(), line.end(), is_text) &&
         std::all_of(line.begin() + static_cast<ptrdiff_t>(space) + 1, line.end(),
                     is_number);
}

bool IsTar(std::string_view head) {
  constexpr size_t kMagicAt = 257;
  return head.size() > kMagicAt && head.substr(kMagicAt).starts_with("ustar");
}

Result<std::string> HeadOf(InflatingSource& source) {
  std::string head(kHeadBytes, '\0');
  HPD_TRY_ASSIGN(const size_t count, source.ReadFully(head));
  head.resize(count);
  return head;
}

Status UnknownFormat(const std::string& name, std::string_view head) {
  const std::string prefix = "cannot read " + name + ": ";
  if (head.empty())
    return Status(StatusCode::kNotFound,
                  prefix + "it is empty; was the recording interrupted before its end?");
  return Status(StatusCode::kCorrupt,
                prefix +
                    "its format is not known; Perfetto traces (raw-trace), pprof "
                    "profiles, folded stacks and heaptrack recordings can be read");
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

FileFormat DetectFormat(std::string_view head) {
  if (head.empty())
    return FileFormat::kUnknown;
  if (IsTar(head))
    return FileFormat::kPerfettoTrace;
  if (head.starts_with("v ") && head.find('\n') < 40)
    return FileFormat::kHeaptrack;
  const FileFormat format = DetectProtobuf(head);
  if (format != FileFormat::kUnknown)
    return format;
  return IsFolded(head) ? FileFormat::kFolded : FileFormat::kUnknown;
}

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
