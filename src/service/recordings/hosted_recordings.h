// The recordings that a service runs: how many there may be, their turns, their dumps.
// One thread.
#pragma once

#include <poll.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/recording_config.h"
#include "engine/session.h"
#include "service/recordings/hosted_recording.h"

namespace heapprofd {

class HostedRecordings {
 public:
  // Whether there may be one more while as many are being finished.
  Status CheckRoom(size_t finishing) const;

  // Whether it may have its name.
  Status CheckUnique(const RecordingConfig& config) const;

  // It has begun.
  void Add(std::unique_ptr<HostedRecording> hosted);

  size_t size() const { return hosted_.size(); }

  // In the order of their recordings' begin.
  std::vector<Session*> sessions() const;

  // What becomes readable when a program starts that one of them waits for.
  void AddTo(std::vector<pollfd>* fds) const;

  // A turn for each, and `tell` behind it. Milliseconds until rings must be looked at
  // again; -1: there are none.
  int Serve(const std::function<void(HostedRecording&)>& tell);

  // While one recording takes its time: all sessions that record.
  void ServeMeanwhile();

  // Of every process of all of them. Gives their number.
  size_t Dump(const std::string& label);

  // The same of all that this command owns.
  size_t DumpOf(size_t owner, const std::string& label);

  // All that this command owns.
  void StopOf(size_t owner);

  void StopAll();

  // One that has come to its end, and stays until it is removed; nullptr: there is none.
  HostedRecording* FindOver() const;

  void Remove(const HostedRecording* hosted);

  // See TraceRecording.
  void LeaveToParent();

 private:
  std::vector<std::unique_ptr<HostedRecording>> hosted_;
  size_t turns_ = 0;
};

}  // namespace heapprofd
