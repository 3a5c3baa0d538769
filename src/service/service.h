// The recordings of one user: any number at once, and the programs that belong to them.
//
//   program --Hello--> the first session that wants it; later ones note the conflict
//   heap_profile --kStart--> a recording; it ends with the connection, its duration or a
//   limit, and is finished (names, pprof files, summary) by a process of its own
//
// Everything it does it does with its own process's rights, which are those of the user:
// the kernel decides which processes the user may profile. Root's service also records
// programs of other users, and serves commands of root alone. One thread; nothing waits
// for a client.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "record/trace_recording.h"
#include "service/connected_commands.h"
#include "service/door.h"
#include "service/finishers.h"
#include "service/recordings/attaching.h"
#include "service/recordings/hosted_recording.h"
#include "service/recordings/hosted_recordings.h"

namespace heapprofd {

// What the service leaves to whoever runs it.
struct ServiceHooks {
  // Runs in a process of its own, with the rights and the standard error of the
  // recording's owner.
  FinishHook finish;
  // Now and then while a recording runs. Gives a line for its owner, or "".
  std::function<std::string(TraceRecording&)> observe;
  // The recording is about to go.
  std::function<void(TraceRecording&)> forget;
};

class Service : private Host {
 public:
  Service(std::unique_ptr<Door> door, std::string place, ServiceHooks hooks);

  ~Service() override;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Serves everybody once, waiting at most `max_wait_ms` (-1: no limit) when there is
  // nothing to do. `wake_fd`: returns early when it becomes readable.
  void Poll(int max_wait_ms, int wake_fd);

  // A dump of every process of all recordings. Gives their number.
  size_t Dump(const std::string& label);

  // Ends all recordings and hands them to their finishers; nobody comes in any more.
  void StopAll();

  // Waits for all of them, whose output is complete then; see Finishers.
  void AwaitFinishers(uint64_t deadline_ns) { finishers_.AwaitAll(deadline_ns); }

  // See ConnectedCommands.
  void set_command_patience(uint64_t patience_ns) { commands_.set_patience(patience_ns); }

  // Nothing runs or is being finished, and nobody is connected.
  bool is_idle() const;

  // True if a command has ever been served, whether it began a recording or not.
  bool has_served() const { return has_served_; }

 private:
  // Host:
  void AdmitCommand(Visitor visitor) override;
  void AdmitProgram(Visitor visitor) override;
  void NoteMissed(pid_t pid) override;

  // False: the connection is to be closed.
  bool Handle(ConnectedCommand& command, ControlMessage message);
  Status Start(ConnectedCommand& command, ControlMessage message);
  AttachPolicy PolicyFor(const HostedRecording& hosted);
  Status Attach(HostedRecording& hosted, ConnectedCommand& command);
  size_t DumpFor(const ConnectedCommand& command, const std::string& label);
  void ServeMeanwhile();
  void FinishOver();
  void Finish(HostedRecording& hosted);

  std::unique_ptr<Door> door_;
  std::string place_;  // the directory of the service
  ServiceHooks hooks_;
  ConnectedCommands commands_;
  HostedRecordings recordings_;
  Finishers finishers_;
  bool has_served_ = false;
  bool is_stopping_ = false;
};

}  // namespace heapprofd
