// What a trace has of the processes of a recording: each described once, under one id, and
// its dumps.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/status.h"
#include "engine/session.h"
#include "trace/trace_writer.h"

namespace heapprofd {

class WrittenTargets {
 public:
  // `writer` outlives this.
  explicit WrittenTargets(TraceWriter* writer) : writer_(writer) {}

  // A dump of its state, and those that it has asked for before. `label` may be empty.
  Status Write(Session& session, Target& target, const std::string& label);

  // What the program has asked for by heapprofd_dump_now, as dumps like all others.
  Status WriteRequested(Session& session, Target& target);

  // Those that another session profiles, each once.
  Status WriteRejected(Session& session);

  // Processes that were asked for by their ids and never came: said, not left out.
  Status WriteAbsent(const Session& session, uint64_t started_ns);

  // Perfetto's skip_symbol_prefix: functions of these files are all called the same.
  void FilterSymbols(const SessionConfig& config, Target& target);

  // Whether its last state is written.
  bool IsComplete(const Target& target) const {
    const auto state = states_.find(&target);
    return state != states_.end() && state->second.is_complete;
  }

  void SetComplete(const Target& target) { states_[&target].is_complete = true; }

 private:
  struct State {
    uint64_t id = 0;
    bool is_described = false;  // in a process tree of the trace
    bool is_complete = false;
    size_t filtered_frames = 0;  // looked at for skip_symbol_prefix
  };

  Status Describe(const Target& target, State* state);

  TraceWriter* writer_;
  std::map<const Target*, State> states_;
  std::map<const TargetProfile*, uint64_t> rejected_ids_;
  uint64_t next_id_ = 0;
};

}  // namespace heapprofd
