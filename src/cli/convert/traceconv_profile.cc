// traceconv profile: the heap dumps of a trace as pprof files, native or Java.
#include <cstdio>
#include <optional>

#include "base/print.h"
#include "cli/convert/traceconv.h"
#include "cli/load_trace.h"
#include "cli/output_file.h"
#include "cli/record/output_directory.h"
#include "export/heap_graph_pprof.h"
#include "export/trace_pprof.h"

namespace heapprofd {
namespace {

// What is needed only for building the trace is gone when this returns.
Status Load(const TraceconvOptions& options, ImportedTrace& trace) {
  TraceBuilder builder(&trace);
  HPD_TRY(LoadTrace("traceconv", options.input, builder));
  HPD_TRY(SymbolizeLoaded("traceconv", builder));
  return DeobfuscateLoaded("traceconv", builder);
}

// Numbers the files of one run.
class ProfileFiles {
 public:
  explicit ProfileFiles(std::string requested) : requested_(std::move(requested)) {}

  // The directory appears with the first.
  Status Write(const DumpProfile& dump) {
    if (count_++ == 0) {
      HPD_TRY_ASSIGN(directory_, OutputDirectory::Use(requested_));
    }
    HPD_TRY_ASSIGN(
        OutputFile file,
        OutputFile::Create(directory_->Place(PprofFileName(dump, count_) + ".pb")));
    // Errors stick to the file.
    dump.encode([&](std::string_view piece) { static_cast<void>(file.Write(piece)); });
    return file.Finish();
  }

  size_t count() const { return count_; }

  // When there are any.
  const std::string& directory() const { return directory_->path(); }

 private:
  std::string requested_;
  std::optional<OutputDirectory> directory_;
  size_t count_ = 0;
};

Result<ProfileKind> KindOf(const TraceconvOptions& options, const ImportedTrace& trace) {
  if (options.kind != ProfileKind::kDetect)
    return options.kind;
  if (trace.heap_graph.graphs.empty())
    return ProfileKind::kAlloc;
  if (!trace.dumps.empty())
    return Status(StatusCode::kInvalidArgument,
                  "cannot tell what to convert: " + options.input +
                      " has native heaps and Java heaps; say --alloc or --java-heap");
  return ProfileKind::kJavaHeap;
}

}  // namespace

Status ConvertToProfiles(const TraceconvOptions& options) {
  ImportedTrace trace;
  HPD_TRY(Load(options, trace));
  HPD_TRY_ASSIGN(const ProfileKind kind, KindOf(options, trace));
  const PprofSelection selection{
      .pid = options.pid, .timestamps = options.timestamps, .annotate = options.annotate};
  ProfileFiles files(options.output_directory);
  const bool is_java = kind == ProfileKind::kJavaHeap;
  if (is_java) {
    HPD_TRY(ConvertHeapGraphsToPprof(
        trace, selection, [&](const DumpProfile& dump) -> Status {
          if (!dump.note.empty())
            Print(stderr, "traceconv: %s\n", dump.note.c_str());
          return files.Write(dump);
        }));
  } else {
    HPD_TRY(ConvertToPprof(trace, selection, [&](const DumpProfile& dump) -> Status {
      return files.Write(dump);
    }));
  }
  if (files.count() == 0)
    return Status(StatusCode::kNotFound,
                  "no profile found in " + options.input + ": " +
                      (is_java ? ReasonForNoHeapGraph(trace, selection)
                               : ReasonForNoProfile(trace, selection)));
  // heap_profile of Perfetto takes the last word with "heap_profile-" for the directory.
  Print(stderr, "Wrote profiles to %s\n", files.directory().c_str());
  return {};
}

Status ConvertToJavaProfiles(const TraceconvOptions& options) {
  TraceconvOptions java = options;
  java.kind = ProfileKind::kJavaHeap;
  return ConvertToProfiles(java);
}

}  // namespace heapprofd
