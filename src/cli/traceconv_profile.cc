// traceconv profile: the heap dumps of a trace as pprof files.
#include <algorithm>
#include <cstdio>

#include "cli/load_trace.h"
#include "cli/output_directory.h"
#include "cli/output_file.h"
#include "cli/traceconv.h"
#include "convert/trace_pprof.h"

namespace heapprofd {
namespace {

// Heap names come from the trace.
std::string AsFileName(std::string name) {
  constexpr size_t kMaxLength = 100;
  name.resize(std::min(name.size(), kMaxLength));
  for (char& c : name) {
    if (c == '/' || static_cast<unsigned char>(c) <= ' ' || c == 127)
      c = '_';
  }
  return name;
}

// What is needed only for building the trace is gone when this returns.
Status Load(const TraceconvOptions& options, ImportedTrace& trace) {
  TraceBuilder builder(&trace);
  HPD_TRY(LoadTrace("traceconv", options.input, builder));
  HPD_TRY(SymbolizeLoaded("traceconv", builder));
  return DeobfuscateLoaded("traceconv", builder);
}

}  // namespace

Status ConvertToProfiles(const TraceconvOptions& options) {
  ImportedTrace trace;
  HPD_TRY(Load(options, trace));
  const PprofSelection selection{
      .pid = options.pid, .timestamps = options.timestamps, .annotate = options.annotate};
  std::string directory;
  int number = 0;
  const auto write = [&](const DumpProfile& dump) -> Status {
    if (directory.empty()) {
      HPD_TRY_ASSIGN(directory, UseOutputDirectory(options.output_directory));
    }
    const std::string path = directory + "/heap_dump." + std::to_string(++number) + "." +
                             std::to_string(dump.pid) + "." + AsFileName(dump.heap_name) +
                             ".pb";
    HPD_TRY_ASSIGN(OutputFile file, OutputFile::Create(path));
    HPD_TRY(file.Write(dump.bytes));
    return file.Finish();
  };
  HPD_TRY(ConvertToPprof(trace, selection, write));
  if (number == 0)
    return Status(StatusCode::kNotFound, "no profile found in " + options.input + ": " +
                                             ReasonForNoProfile(trace, selection));
  // heap_profile of Perfetto takes the last word with "heap_profile-" for the directory.
  fprintf(stderr, "Wrote profiles to %s\n", directory.c_str());
  return {};
}

}  // namespace heapprofd
