// The time between start and end of a program that heap_profile has started: serves the
// recording until the program and its followed children are gone, the recording's time is
// over, or the user has had enough.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "cli/managed/dumps_meanwhile.h"
#include "cli/record/live_view.h"
#include "cli/record/program_children.h"
#include "cli/record/signals.h"
#include "cli/record/status_line.h"
#include "record/trace_recording.h"

namespace heapprofd {

// Of a program and of those of its descendants that it has waited for.
struct ProgramUsage {
  double cpu_seconds = 0;  // user and system
  long peak_rss_kib = 0;   // of the largest of them
};

class ProgramRun {
 public:
  // The recording's first session has the socket that the program reports to.
  ProgramRun(TraceRecording* recording,
             LiveView* view,
             StatusLine* status_line,
             SteeringSignals* signals)
      : recording_(recording),
        view_(view),
        status_line_(status_line),
        signals_(signals),
        children_(recording) {}

  // Returns when the recording is over. `program` is a child of ours; its exit code is
  // the result: 128 + signal when it was killed, 0 when it runs on because the
  // recording's own time was over. A recording that fails does not end the wait.
  int Run(pid_t program);

  // The first request ends the recording and does not go to the program, which can be
  // asked for something then.
  void EndAtFirstRequest() { ends_at_first_request_ = ignores_interrupt_ = true; }

  // Looked after as long as it is recorded.
  void set_java_dumps(DumpsMeanwhile* dumps) { java_dumps_ = dumps; }

  static constexpr uint64_t kForever = UINT64_MAX;

  // After Run: ends the program when such a request has come, and gives its exit code. A
  // further request ends the wait, or the end of our patience.
  int EndProgram(int exit_code, uint64_t patience_ns);

  // Somebody has asked for the end of the recording, or of the program.
  bool is_interrupted() const { return stop_requests_ > 0; }

  bool program_is_running() const { return program_is_running_; }

  const ProgramUsage& usage() const { return usage_; }

 private:
  void Record();
  void SayUnprofiledAndAwait();
  void AwaitProgram(int requests, uint64_t patience_ns);
  bool IsOver();
  void HandleSignals();
  void PassOn(int signal);
  void ReapProgram();
  void SayWaiting();
  void LookAfterJava();

  TraceRecording* recording_;
  LiveView* view_;
  StatusLine* status_line_;
  SteeringSignals* signals_;
  DumpsMeanwhile* java_dumps_ = nullptr;  // nullptr: there are none
  pid_t program_ = -1;
  bool program_is_running_ = false;
  bool said_waiting_ = false;
  bool ends_at_first_request_ = false;
  bool ignores_interrupt_ = false;  // the program: it was started so
  int stop_requests_ = 0;
  ProgramChildren children_;
  int exit_code_ = 0;
  ProgramUsage usage_;
};

}  // namespace heapprofd
