// traceconv symbolize: ModuleSymbols packets for the frames of a trace that have none, or
// names without lines.
#include <cstdio>

#include <protozero/pbf_writer.hpp>

#include "base/print.h"
#include "cli/convert/traceconv.h"
#include "cli/convert/traceconv_packets.h"
#include "cli/load_trace.h"
#include "cli/output_file.h"
#include "import/perfetto/symbolize_trace.h"
#include "trace/module_symbols.h"

namespace heapprofd {

Result<std::string> SymbolPackets(const TraceconvOptions& options,
                                  const ImportedTrace& trace) {
  HPD_TRY_ASSIGN(SymbolizeOptions symbols, SymbolizeOptions::FromEnvironment());
  symbols.binary_path.insert(symbols.binary_path.end(), options.symbol_paths.begin(),
                             options.symbol_paths.end());
  const FoundSymbols found = FindSymbols(trace, symbols);
  const SymbolizeSummary& summary = found.summary;
  for (const std::string& message : summary.messages)
    Print(stderr, "traceconv: %s\n", message.c_str());
  if (summary.unnamed_frames > 0 || options.verbose)
    Print(stderr, "traceconv: %llu of %llu addresses have a name now\n",
          static_cast<unsigned long long>(summary.frames - summary.unnamed_frames),
          static_cast<unsigned long long>(summary.frames));
  std::string packets;
  for (const TraceCode* code : {&found.unnamed, &found.named}) {
    for (const std::string& message :
         ModuleSymbolsMessages(code->mappings, code->frames, NamedModules::kWithBuildId))
      AppendPacket(packets, field::TracePacket::kModuleSymbols, message);
  }
  return packets;
}

Status ConvertToSymbols(const TraceconvOptions& options) {
  ImportedTrace trace;
  TraceBuilder builder(&trace);
  HPD_TRY(LoadTrace("traceconv", options.input, builder));
  HPD_TRY_ASSIGN(const std::string packets, SymbolPackets(options, trace));
  if (packets.empty())
    Print(stderr, "traceconv: there is nothing to add: %s\n",
          trace.frames.row_count() == 0
              ? "the trace has no stack"
              : "all addresses have symbols, or no file that tells more of them was "
                "found; PERFETTO_BINARY_PATH names directories to look in");
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  HPD_TRY(output.Write(packets));
  return output.Finish();
}

}  // namespace heapprofd
