// The recordings of one user: any number at once, and the programs that belong to them.
//
//   program --Hello--> the first session that wants it; later ones note the conflict
//   heap_profile --kStart--> a recording; it ends with the connection, its duration or a
//   limit, and is finished (names, pprof files, summary) by a process of its own
//
// Everything it does it does with its own process's rights, which are those of the user:
// whom he may profile is decided by the kernel. One thread; nothing waits for a client.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "record/recording_outcome.h"
#include "record/trace_recording.h"
#include "service/control_channel.h"
#include "service/door.h"
#include "service/finishers.h"
#include "wire/handshake.h"

namespace heapprofd {

// What a recording's owner wants done at its end.
struct FinishRequest {
  ScopedFd directory;          // for pprof files; invalid: only the trace is wanted
  std::string directory_path;  // for messages
  std::string trace_path;      // for messages
  uint32_t top = 10;
  bool quiet = false;
  bool wants_status = false;             // while it runs
  bool wants_dumps = false;              // to know of each
  bool only_dumps = false;               // no names, no summary
  std::vector<std::string> environment;  // NAME=VALUE of the owner, for the finisher
};

// What the service leaves to whoever runs it.
struct ServiceHooks {
  // Symbolizes and writes what is left; runs in a process of its own, with the rights and
  // the standard error of the recording's owner.
  std::function<RecordingOutcome(TraceRecording&, const FinishRequest&)> finish;
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

  // How long a command may take to say what it wants, from when it came or was last
  // answered.
  void set_command_patience(uint64_t patience_ns) { command_patience_ns_ = patience_ns; }

  // Nothing runs or is being finished, and nobody is connected.
  bool is_idle() const;

  // Recordings that were ever started.
  size_t started() const { return started_; }

  // The front desk wants it to come to an end.
  bool is_told_to_leave() const { return is_told_to_leave_; }

 private:
  struct Hosted {
    std::unique_ptr<TraceRecording> recording;
    FinishRequest request;
    ScopedFd standard_error;
    size_t connection;  // serial number; the recording ends with it
    uint64_t told_dumps = 0;
  };

  struct Connection {
    size_t serial;
    ControlChannel channel;
    uint64_t deadline_ns;       // to ask for something, unless it has a recording
    bool awaits_start = false;  // kStarted is owed to it
  };

  // Host:
  void AdmitCommand(Visitor visitor) override;
  Reply AdmitProgram(Visitor& visitor) override;
  void NoteTaken(pid_t pid) override;

  // When the turn comes: a target may be half made now.
  void DumpAll(const std::string& label) override { owed_dumps_.push_back(label); }

  void Leave() override { is_told_to_leave_ = true; }

  Session* SessionFor(const ProcessDescription& process, ClientOrigin origin);
  void EndTargetsOf(pid_t pid);
  void ServeConnections();
  // False: the connection is to be closed.
  bool Handle(Connection& connection, ControlMessage message);
  bool HasRecording(const Connection& connection) const;
  // Whether there may be one more recording.
  Status CheckRoom() const;
  void TellStarted();
  static void TellStarted(Connection& connection);
  Status Start(Connection& connection, ControlMessage message);
  Status CheckUnique(const RecordingConfig& config) const;
  Status Attach(Hosted& hosted, Connection& connection);
  bool AnySession(const std::function<bool(const Session&)>& is_such) const;
  size_t DumpFor(const Connection& connection, const std::string& label);
  void NoteConflicts(Session& session);
  int ServeRecordings();
  void ServeMeanwhile();
  void FinishOver();
  void Finish(Hosted& hosted);
  [[noreturn]] void RunFinisher(Hosted& hosted, int connection);
  void TellStatus(const Hosted& hosted, const std::string& text);
  void TellDumps(Hosted& hosted);
  Connection* FindConnection(size_t serial);

  std::unique_ptr<Door> door_;
  std::string place_;  // the directory of the service
  ServiceHooks hooks_;
  bool is_behind_ = false;  // somebody's message waits in here, not in a socket
  bool is_told_to_leave_ = false;
  bool is_stopping_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Hosted>> hosted_;
  Finishers finishers_;
  std::vector<std::string> owed_dumps_;  // labels
  uint64_t command_patience_ns_ = 4'000'000'000;
  size_t next_serial_ = 1;
  size_t started_ = 0;
  size_t turns_ = 0;
};

}  // namespace heapprofd
