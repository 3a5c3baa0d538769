// traceconv deobfuscate: DeobfuscationMapping packets from mapping files.
#include <iterator>

#include <protozero/pbf_writer.hpp>

#include "cli/convert/traceconv.h"
#include "cli/convert/traceconv_packets.h"
#include "cli/load_trace.h"
#include "cli/output_file.h"
#include "trace/deobfuscation_messages.h"

namespace heapprofd {

void AppendPacket(std::string& trace, uint32_t field, const std::string& message) {
  std::string packet;
  protozero::pbf_writer(packet).add_message(field, message);
  protozero::pbf_writer(trace).add_message(field::Trace::kPacket, packet);
}

Result<std::string> DeobfuscationPackets(const TraceconvOptions& options) {
  std::vector<ProguardSource> sources;
  if (options.auto_proguard_maps) {
    HPD_TRY_ASSIGN(sources, ProguardSourcesFromEnvironment());
  }
  for (const std::string& map : options.proguard_maps) {
    HPD_TRY_ASSIGN(std::vector<ProguardSource> more, ParseProguardSources(map));
    std::move(more.begin(), more.end(), std::back_inserter(sources));
  }
  HPD_TRY_ASSIGN(const std::vector<DeobfuscationMap> maps,
                 ReadProguardMaps("traceconv", sources));
  std::string packets;
  for (const DeobfuscationMap& map : maps) {
    for (const std::string& message : DeobfuscationMessages(map))
      AppendPacket(packets, field::TracePacket::kDeobfuscationMapping, message);
  }
  return packets;
}

Status ConvertToDeobfuscation(const TraceconvOptions& options) {
  HPD_TRY_ASSIGN(const std::string packets, DeobfuscationPackets(options));
  if (packets.empty())
    return Status(StatusCode::kInvalidArgument,
                  "cannot deobfuscate: no mapping file is named; set "
                  "PERFETTO_PROGUARD_MAP=package=file or give --proguard-map");
  HPD_TRY_ASSIGN(OutputFile output, OutputFile::CreateNamed(options.output));
  HPD_TRY(output.Write(packets));
  return output.Finish();
}

}  // namespace heapprofd
