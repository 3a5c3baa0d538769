// The trace of a recording: what of its sessions is written to it, and when all of it is.
//
// Dumps are written as they happen, so that what was recorded outlives a recorder that is
// killed. Functions get their names at the end: looking them up takes seconds in which
// the rings would fill. The first error stands, and what else can be written is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/recording_config.h"
#include "engine/session.h"
#include "record/allocation_stream.h"
#include "record/written_targets.h"
#include "trace/trace_writer.h"

namespace heapprofd {

// In the order of their sessions, and of their arrival.
std::vector<Target*> AllTargets(const std::vector<std::unique_ptr<Session>>& sessions);

class RecordedTrace {
 public:
  // All outlive it.
  RecordedTrace(const RecordingConfig* config,
                const std::vector<std::unique_ptr<Session>>* sessions,
                TraceFile file);

  RecordedTrace(const RecordedTrace&) = delete;
  RecordedTrace& operator=(const RecordedTrace&) = delete;

  Status WriteHead() { return writer_.WriteHeader(SerializeTraceConfig(*config_)); }

  // Of what others write, too: nothing waits in here any more.
  Status Flush() { return writer_.Finish(); }

  // For those that write packets of their own.
  TraceWriter* writer() { return &writer_; }

  // What the programs of this session have asked for by heapprofd_dump_now.
  void WriteRequested(Session& session);

  // A dump of its present state; the last one, when it has ended. `label` may be empty.
  void WriteDump(Session& session, Target& target, const std::string& label);

  // Its last state is written.
  bool IsComplete(const Target& target) const { return written_.IsComplete(target); }

  // Behind the dumps of a session's processes: what else belongs to that moment.
  void EndDump(Session& session);

  // See WrittenTargets.
  void FilterSymbols();

  // When frames have their names: final dumps, symbols and `end`. `started_ns`: of the
  // recording.
  Status WriteRest(uint64_t started_ns, const RecordingEnd& end);

  // After WriteRest has failed: makes a trace in memory of all that is still known, which
  // takes the place of the one that could not be written. status() stays.
  void WriteAnew(uint64_t started_ns, const RecordingEnd& end);

  // Where it is.
  const TraceFile& file() const { return writer_.file(); }

  uint64_t size() const { return writer_.size(); }

  // What went wrong while writing.
  const Status& status() const { return status_; }

  // The first error stands.
  void Note(Status status);

 private:
  const RecordingConfig* config_;
  const std::vector<std::unique_ptr<Session>>* sessions_;
  TraceWriter writer_;
  WrittenTargets written_;
  AllocationStream stream_;
  Status status_;
};

}  // namespace heapprofd
