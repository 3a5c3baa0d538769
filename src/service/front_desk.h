// The front desk of root's service: one socket for the programs and commands of all
// users. It asks the kernel who is there and hands the connection to the engine of the
// user, a process with his rights (engine_process.h); it parses nothing, holds nobody's
// data, and waits for nobody.
//
//   a command   --> the engine of whoever asks, which is started for him
//   a program   --> the engines that have recordings and may want it: root's, then those
//                   of its user; the first that takes it has it
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "attach/gate/exec_gate.h"
#include "base/status.h"
#include "service/engine_process.h"
#include "service/engines.h"
#include "service/reception.h"
#include "service/runtime_directory.h"
#include "service/wake_pacing.h"

namespace heapprofd {

class FrontDesk {
 public:
  // `listener`: see Reception.
  static Result<std::unique_ptr<FrontDesk>> Open(
      std::unique_ptr<RuntimeDirectory> directory,
      ScopedFd listener,
      EngineProcess::Main engine_main);

  // Serves everybody once, waiting at most `max_wait_ms` (-1: no limit) when there is
  // nothing to do. `wake_fd`: returns early when it becomes readable.
  void Poll(int max_wait_ms, int wake_fd);

  // A dump of every process of all recordings.
  void Dump(const std::string& label);

  // Forgets engines that have ended.
  void ReapEngines();

  // Nobody comes in any more; all engines are told to finish. Another service may start.
  void StopAll();

  // Waits for them, at most until then (MonotonicNs); the rest is killed.
  void AwaitEngines(uint64_t deadline_ns);

  // No engine runs and nobody waits.
  bool is_idle() const;

  // Engines that were ever started.
  size_t started() const { return engines_.started(); }

 private:
  FrontDesk(std::unique_ptr<RuntimeDirectory> directory, EngineProcess::Main engine_main)
      : directory_(std::move(directory)), engines_(std::move(engine_main)) {}

  void Admit(Visitor visitor);
  void AdmitCommand(Visitor visitor);
  // To the next engine behind `after` (nullptr: to the first) that may want the program.
  void Offer(Visitor visitor, const EngineProcess* after);
  void Serve(EngineProcess& engine);
  void Hear(EngineProcess& engine);
  // False: it is gone, or talks nonsense.
  bool HearOne(EngineProcess& engine);
  void Handle(EngineProcess& engine, const LinkMessage& message);
  // To those who have asked the exec gate.
  void AnswerWatchers();
  void TellTaken(const Visitor& program);
  void TellRecordings();
  // Programs that lie dormant, and then the engines that have told of a recording.
  void WakeAndAnswer();
  int MillisecondsToNext() const;

  std::unique_ptr<RuntimeDirectory> directory_;
  std::unique_ptr<Reception> reception_;  // nullptr: closed
  ExecGate exec_gate_;
  Engines engines_;
  WakePacing wakes_;
};

}  // namespace heapprofd
