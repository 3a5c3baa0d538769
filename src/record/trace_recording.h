// One recording: its sessions, the dumps they owe, and the trace they go to.
//
// Dumps are written to the trace as they happen, so that what was recorded outlives a
// recorder that is killed. Functions get their names at the end: looking them up takes
// seconds in which the rings would fill. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/recording_config.h"
#include "engine/session.h"
#include "record/allocation_stream.h"
#include "record/other_sources.h"
#include "record/written_targets.h"
#include "trace/trace_writer.h"

namespace heapprofd {

enum class StopCause : uint8_t {
  kNone,  // still recording
  kRequested,
  kDuration,
  kFileFull,
  kGuardrail,
  kFailed,  // status() says why
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

  // Called between the dumps of two processes, now and then: what must not wait for all
  // of them. The sessions of this recording are served by default.
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

  // Why the recording failed, or what went wrong while writing.
  const Status& status() const { return status_; }

  const RecordingConfig& config() const { return config_; }

  const std::vector<std::unique_ptr<Session>>& sessions() const { return sessions_; }

  // All targets of all sessions.
  std::vector<Target*> targets() const;

  size_t live_targets() const;

  // After Stop, when frames have their names: writes final dumps, symbols and `end`.
  Status WriteRest(const RecordingEnd& end);

  // Where the trace is.
  const TraceFile& file() const { return writer_.file(); }

  // After WriteRest has failed: makes a trace in memory of all that is still known, which
  // takes the place of the one that could not be written. status() stays.
  void WriteAnew(const RecordingEnd& end);

 private:
  struct SessionState {
    uint64_t next_dump_ns = 0;  // 0: none
    double cpu_at_start = 0;    // seconds, of this process
  };

  bool IsDue(size_t session, uint64_t now) const;
  void CheckLimits(uint64_t now);
  bool HitsGuardrail(size_t session) const;
  void DumpSession(Session& session, const std::string& label);
  void DrainForDump(Session& session, Target& target);
  // While a dump of `session` takes its time.
  void ServeOthers(Session& session);
  void Note(Status status);

  RecordingConfig config_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<SessionState> session_states_;
  TraceWriter writer_;
  WrittenTargets written_;
  OtherSources other_sources_;
  AllocationStream stream_;
  uint64_t started_ns_ = 0;
  uint64_t stopped_ns_ = 0;  // 0: it has not
  uint64_t limits_checked_ns_ = 0;
  uint64_t drained_ns_ = 0;
  std::function<void()> between_dumps_;
  StopCause cause_ = StopCause::kNone;
  uint64_t dump_rounds_ = 0;
  Status status_;
};

}  // namespace heapprofd
