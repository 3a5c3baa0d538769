// Dumps of the processes of a session, one after the other, while all others go on: what
// a process has done before its dump belongs into it, and nobody's ring may fill
// meanwhile. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/session.h"
#include "record/look_turns.h"
#include "record/recorded_trace.h"

namespace heapprofd {

class SessionDumper {
 public:
  // Outlives it.
  explicit SessionDumper(RecordedTrace* trace) : trace_(trace) {}

  // Called between the dumps of two processes, now and then: what must not wait for all
  // of them. The session alone is served by default.
  void set_between(std::function<void()> between) { between_ = std::move(between); }

  // Writes one of each process whose last one is not written. `label` may be empty: the
  // name of this moment, which those that ended before do not get.
  void Dump(Session& session, const std::string& label);

  // The session ends: what only a process that still runs can tell of itself, for its
  // last dump.
  void LookAtLast(Session& session);

 private:
  void AskAllocatorsOf(Session& session);
  void BeginLooks(const Session& session);
  // False: there is no time left.
  bool LookForIdle(Session& session, Target& target, uint64_t end_ns);
  void DrainForDump(Session& session, Target& target);
  // While a dump of `session` takes its time.
  void ServeOthers(Session& session);

  RecordedTrace* trace_;
  std::function<void()> between_;
  LookTurns look_turns_;
  uint64_t served_ns_ = 0;  // when others were the last time
};

}  // namespace heapprofd
