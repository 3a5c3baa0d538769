// The data sources of a recording besides its heaps: begun, served in turns, ended.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "sources/data_source.h"
#include "trace/trace_writer.h"

namespace heapprofd {

class OtherSources {
 public:
  explicit OtherSources(TraceWriter* writer);

  OtherSources(const OtherSources&) = delete;
  OtherSources& operator=(const OtherSources&) = delete;

  // Those that `trace_config` (RecordingConfig::rest) asks for.
  void Begin(const std::string& trace_config);

  // What of them cannot be recorded, one line each.
  const std::vector<std::string>& notes() const { return notes_; }

  // Writes what is due; a source that has much to say goes on in the next turn. `now`:
  // CLOCK_MONOTONIC.
  Status Serve(uint64_t now);

  // When Serve has something to do; UINT64_MAX: never.
  uint64_t next_ns() const;

  // Writes the rest.
  Status End();

  // In a forked process: gives up what would keep a source from ending.
  void LeaveToParent() { sources_.clear(); }

 private:
  TraceWriter* writer_;
  PacketSink sink_;
  std::vector<std::unique_ptr<DataSource>> sources_;
  std::vector<std::string> notes_;
  uint64_t flushed_ns_ = 0;
};

}  // namespace heapprofd
