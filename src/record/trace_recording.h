// One recording: its sessions, when they owe a dump and when they end. What of them goes
// to the trace is in recorded_trace.h. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/recording_config.h"
#include "engine/session.h"
#include "record/dump_times.h"
#include "record/guardrail.h"
#include "record/other_sources.h"
#include "record/recorded_trace.h"
#include "record/session_dumper.h"

namespace heapprofd {

enum class StopCause : uint8_t {
  kNone,  // still recording
  kRequested,
  kDuration,
  kFileFull,
  kGuardrail,
  kFailed,  // the status of its trace says why
};

class TraceRecording {
 public:
  // One session per entry of `config.sessions`.
  TraceRecording(RecordingConfig config,
                 std::vector<std::unique_ptr<Session>> sessions,
                 TraceFile trace);

  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;

  // Writes the head of the trace. Times count from here.
  Status Begin();

  // What of the configuration's other data sources cannot be recorded, one line each.
  const std::vector<std::string>& notes() const { return other_sources_.notes(); }

  // In a forked process, which has nothing to do with this recording: gives up what would
  // keep it from ending.
  void LeaveToParent();

  // Upkeep of all sessions and what is due of it: dumps, limits. Gives the milliseconds
  // after which it should be called again: 0 when rings hold more, at most `max_ms`.
  // `turn_end_ns`: see Session::Serve.
  int Serve(int max_ms, uint64_t turn_end_ns);

  // The same without draining, for callers that poll a session themselves.
  void ServeSchedule();

  // Milliseconds until something is due, at most `max_ms`.
  int MillisecondsToNext(int max_ms) const;

  // See SessionDumper; called while a session waits for a process, too.
  void set_between_dumps(std::function<void()> callback);

  // A dump of every process now. `label` may be empty.
  void Dump(const std::string& label);

  // How often all processes have been dumped before the end, on request or by the
  // schedule.
  uint64_t dump_rounds() const { return dump_rounds_; }

  // Ends the sessions; the final state of every heap is in the targets' profiles.
  void Stop(StopCause cause);

  StopCause cause() const { return cause_; }

  // How long it has recorded, or records until now: from the first of its processes on.
  // No event of theirs is later, counted from their own beginnings.
  double seconds() const;

  const RecordingConfig& config() const { return config_; }

  const std::vector<std::unique_ptr<Session>>& sessions() const { return sessions_; }

  // All targets of all sessions.
  std::vector<Target*> targets() const { return AllTargets(sessions_); }

  size_t live_targets() const;

  // What has been written, and what became of that.
  const RecordedTrace& trace() const { return trace_; }

  // After Stop; see RecordedTrace.
  Status WriteRest(const RecordingEnd& end) { return trace_.WriteRest(started_ns_, end); }

  // The same.
  void WriteAnew(const RecordingEnd& end) { trace_.WriteAnew(started_ns_, end); }

 private:
  // Of a session, from its begin on.
  struct Duties {
    DumpTimes dumps;
    Guardrail guardrail;
  };

  void CheckLimits(uint64_t now);

  RecordingConfig config_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<Duties> duties_;  // one each, once they have begun
  RecordedTrace trace_;
  SessionDumper dumper_;
  OtherSources other_sources_;
  uint64_t started_ns_ = 0;
  uint64_t stopped_ns_ = 0;  // 0: it has not
  uint64_t limits_checked_ns_ = 0;
  StopCause cause_ = StopCause::kNone;
  uint64_t dump_rounds_ = 0;
};

}  // namespace heapprofd
