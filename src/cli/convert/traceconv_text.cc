// traceconv text: the packets of a trace as protobuf text.
#include <optional>

#include "cli/convert/trace_packets.h"
#include "cli/convert/traceconv.h"
#include "cli/output_file.h"
#include "trace/text_format.h"

namespace heapprofd {

Status ConvertToText(const TraceconvOptions& options) {
  TraceTextFormat format;
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  uint64_t damaged = 0;
  Status write_status;
  HPD_TRY_ASSIGN(const ReadReport report,
                 ReadTracePackets(options.input, [&](std::string_view packet) {
                   const std::optional<std::string> text = format.PacketToText(packet);
                   damaged += text ? 0u : 1u;
                   if (text && write_status.ok())
                     write_status = output.Write(*text);
                 }));
  HPD_TRY(output.Finish());
  TellDamage(report, damaged, "left out");
  return {};
}

}  // namespace heapprofd
