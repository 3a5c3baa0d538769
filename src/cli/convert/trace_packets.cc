#include "cli/convert/trace_packets.h"

#include <cstdio>
#include <string_view>

#include <protozero/pbf_writer.hpp>

#include "base/print.h"
#include "cli/results/quality_words.h"
#include "import/import_file.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

bool IsOfPprof(std::string_view packet) {
  std::string head;
  protozero::pbf_writer(head).add_bytes(field::Trace::kPacket, packet.data(),
                                        packet.size());
  return DetectFormat(head) == FileFormat::kPprof;
}

}  // namespace

Result<ReadReport> ReadTracePackets(const std::string& path, const PacketVisitor& visit) {
  bool is_first = true;
  bool is_pprof = false;
  HPD_TRY_ASSIGN(ReadReport report, ReadPackets(path, [&](std::string_view packet) {
                   is_pprof |= is_first && IsOfPprof(packet);
                   is_first = false;
                   if (!is_pprof)
                     visit(packet);
                 }));
  if (is_pprof)
    return Status(StatusCode::kCorrupt,
                  "cannot read trace " + path +
                      ": it is a pprof profile; go tool pprof -raw shows what is in it");
  return report;
}

void TellDamage(const ReadReport& report, uint64_t damaged, const char* fate) {
  if (damaged > 0)
    Print(stderr, "traceconv: %s %s\n",
          CountedExactly(damaged, " damaged packet is", " damaged packets are").c_str(),
          fate);
  if (!report.damage.empty())
    Print(stderr, "traceconv: the trace is damaged behind %s: %s\n",
          CountedExactly(report.packets, " packet", " packets").c_str(),
          report.damage.c_str());
}

}  // namespace heapprofd
