// traceconv text: the packets of a trace as protobuf text.
#include <cstdio>
#include <optional>

#include "base/print.h"
#include "cli/convert/traceconv.h"
#include "cli/output_file.h"
#include "import/perfetto/packet_reader.h"
#include "trace/text_format.h"

namespace heapprofd {

Status ConvertToText(const TraceconvOptions& options) {
  TraceTextFormat format;
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  uint64_t damaged = 0;
  Status write_status;
  HPD_TRY_ASSIGN(const ReadReport report,
                 ReadPackets(options.input, [&](std::string_view packet) {
                   const std::optional<std::string> text = format.PacketToText(packet);
                   damaged += text ? 0u : 1u;
                   if (text && write_status.ok())
                     write_status = output.Write(*text);
                 }));
  HPD_TRY(output.Finish());
  if (damaged > 0)
    Print(stderr, "traceconv: %llu damaged packets are left out\n",
          static_cast<unsigned long long>(damaged));
  if (!report.damage.empty())
    Print(stderr, "traceconv: the trace is damaged behind %llu packets: %s\n",
          static_cast<unsigned long long>(report.packets), report.damage.c_str());
  return {};
}

}  // namespace heapprofd
