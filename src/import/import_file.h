// Opens any file that holds a heap profile, whatever it is, as tables: Perfetto traces,
// pprof profiles, folded stacks and heaptrack recordings; each plain, gzip or zstd.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/perfetto/byte_source.h"
#include "tables/trace_builder.h"

namespace heapprofd {

enum class FileFormat : uint8_t { kUnknown, kPerfettoTrace, kPprof, kFolded, kHeaptrack };

// How much of a file is looked at to see its format.
inline constexpr size_t kFormatHead = 4096;

// Returns the format that the (decompressed) first bytes of a file have.
FileFormat DetectFormat(std::string_view head);

// The same of a file, which is opened for it: no pipe.
Result<FileFormat> FormatOfFile(const std::string& path);

// What was not right in a file that could be read nevertheless.
struct ImportReport {
  uint64_t bytes = 0;        // decompressed
  uint64_t bad_records = 0;  // lines or messages that were left out
  uint64_t cut_stacks = 0;   // without their outermost frames: there were too many
  std::string damage;        // why reading ended early; empty: it did not
  std::vector<std::string> notes = {};  // what its figures do not show
};

// Adds one file ("-": standard input) to the trace. Its processes are others than those
// of files before. Errors: it cannot be read, or holds nothing of a format we know.
Result<ImportReport> ImportFile(const std::string& path, TraceBuilder& builder);

// The same of any bytes; `name` is for messages and stands for a process without a name.
Result<ImportReport> ImportBytes(ByteSource& source,
                                 const std::string& name,
                                 TraceBuilder& builder);

// For programs that do little but import: what one step of it needs goes back to the
// system before the next step's tables grow. For the whole process.
void ReturnFreedMemory();

// ImportBytes of the only source of a trace. `warnings` receives a line for each thing that
// was not right.
Status ImportSource(ByteSource& source,
                    const std::string& name,
                    TraceBuilder& builder,
                    std::vector<std::string>* warnings);

// The same of several files, in the order given.
Status ImportFiles(std::span<const std::string> paths,
                   TraceBuilder& builder,
                   std::vector<std::string>* warnings);

}  // namespace heapprofd
