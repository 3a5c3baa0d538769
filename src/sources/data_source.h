// What a trace configuration may ask for beside heaps: the state of the machine and of
// its processes, on the timeline of the same trace. A source is served by the thread that
// drains the rings, so it works in slices and never waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace heapprofd {

// Appends a packet to the trace. `field`: of TracePacket.
using PacketSink = std::function<Status(uint32_t field, const std::string& message)>;

class DataSource {
 public:
  DataSource() = default;
  DataSource(const DataSource&) = delete;
  DataSource& operator=(const DataSource&) = delete;
  virtual ~DataSource() = default;

  // As the configuration calls it.
  virtual const char* name() const = 0;

  // An error says why nothing of it can be recorded.
  virtual Status Begin() = 0;

  // Writes what is due, at most until `until_ns` (CLOCK_MONOTONIC) or a step longer.
  // Errors are those of the sink.
  virtual Status Serve(const PacketSink& sink, uint64_t until_ns) = 0;

  // When Serve has something to do; CLOCK_MONOTONIC, UINT64_MAX: never again.
  virtual uint64_t next_ns() const = 0;

  // The rest. The source leaves nothing behind on the machine.
  virtual Status End(const PacketSink& sink) = 0;
};

struct DataSources {
  std::vector<std::unique_ptr<DataSource>> sources;
  // Sources and fields of sources that cannot be recorded here, one line each.
  std::vector<std::string> notes;
};

// Those that `trace_config`, a TraceConfig in binary form, asks for; not yet begun.
DataSources MakeDataSources(const std::string& trace_config);

}  // namespace heapprofd
