// What a tracing service would say about the machine and its processes, as serialized
// messages: without it readers could neither date nor name what the profiles describe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "profile/model.h"

namespace heapprofd {

// All six clocks that Perfetto knows, read one right after the other.
std::string ClockSnapshotMessage();

std::string SystemInfoMessage();

// A new random identity of the trace.
std::string TraceUuidMessage();

// The fields of a ProcessTree.Process. A long command line is cut.
void AddProcess(protozero::pbf_writer& entry, const ProcessDescription& process);

// One or more ProcessTree messages, each small enough for a packet.
std::vector<std::string> ProcessTreeMessages(
    std::span<const ProcessDescription> processes);

// ProcessStats with the memory context of one process.
std::string ProcessMemoryMessage(const TargetProfile& profile);

// CLOCK_BOOTTIME, the default domain of packet timestamps.
uint64_t BootTimeNs();

}  // namespace heapprofd
