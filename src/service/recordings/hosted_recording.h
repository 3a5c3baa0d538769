// A recording that a service runs for one of its commands, its owner: what the owner is
// told meanwhile, and how it comes to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/scoped_fd.h"
#include "config/recording_config.h"
#include "record/recording_outcome.h"
#include "record/trace_recording.h"
#include "service/connected_commands.h"
#include "service/recordings/recording_request.h"
#include "service/recordings/seen_starts.h"

namespace heapprofd {

// Symbolizes and writes what is left.
using FinishHook = std::function<RecordingOutcome(TraceRecording&, const FinishRequest&)>;

class HostedRecording {
 public:
  // `owner`: number of the command whose it is; the recording ends with it.
  HostedRecording(const RecordingConfig& config, RecordingRequest request, size_t owner);

  HostedRecording(const HostedRecording&) = delete;
  HostedRecording& operator=(const HostedRecording&) = delete;

  TraceRecording& recording() { return recording_; }

  const TraceRecording& recording() const { return recording_; }

  const FinishRequest& request() const { return request_; }

  size_t owner() const { return owner_; }

  // The programs of each session that start, where they cannot be caught.
  SeenStarts& seen_starts(const Session* session) { return seen_starts_[session]; }

  // All processes that were asked for by number have been recorded and are gone.
  bool HasNothingLeft() const;

  // Tells the owner of new dumps, if it wants to know. One that does not read is told
  // later how many there were.
  void TellDumps(const ConnectedCommands& commands);

  // The same of `status`, a line or "". One that does not read gets no more.
  void TellStatus(const ConnectedCommands& commands, const std::string& status) const;

  // In a process of its own: what there is to say goes to the owner's standard error.
  // `answer`: the connection to the owner; nullptr: it is gone.
  void Finish(const FinishHook& finish, ControlChannel* answer);

 private:
  FinishRequest request_;
  ScopedFd standard_error_;
  size_t owner_;
  std::map<const Session*, SeenStarts> seen_starts_;
  uint64_t told_dumps_ = 0;
  TraceRecording recording_;
};

}  // namespace heapprofd
