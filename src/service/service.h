// heapprofd, the service: one socket for the programs of many, any number of recordings
// at once.
//
//   program --Hello--> the first session that wants it; later ones note the conflict
//   heap_profile --kStart--> a recording; it ends with the connection, its duration or a
//   limit, and is finished (names, pprof files, summary) by a process of its own
//
// Who may profile whom: root everybody, others the processes of their own user. Whoever
// is at the other end is told by the kernel. One thread; nothing waits for a client, and
// no user but the service's own can take more than a share of what it has to give.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/scoped_fd.h"
#include "base/status.h"
#include "record/trace_recording.h"
#include "service/control_channel.h"
#include "service/runtime_directory.h"
#include "wire/handshake.h"

namespace heapprofd {

// What a recording's owner wants done at its end.
struct FinishRequest {
  std::string directory;   // for pprof files; empty: only the trace is wanted
  std::string trace_path;  // for messages
  uint32_t top = 10;
  bool quiet = false;
  std::vector<std::string> environment;  // NAME=VALUE of the owner, for the finisher
};

// What the service leaves to whoever runs it.
struct ServiceHooks {
  // Symbolizes and writes what is left; runs in a process of its own, with the rights and
  // the standard error of the recording's owner. Gives an exit code.
  std::function<int(TraceRecording&, const FinishRequest&)> finish;
  // Now and then while a recording runs.
  std::function<void(TraceRecording&)> observe;
  // The recording is about to go.
  std::function<void(TraceRecording&)> forget;
};

class Service {
 public:
  // `listener`: a listening socket from whoever supervises the service, or invalid: it
  // makes its own.
  static Result<std::unique_ptr<Service>> Create(
      std::unique_ptr<RuntimeDirectory> directory, ScopedFd listener, ServiceHooks hooks);

  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Serves everybody once, waiting at most `max_wait_ms` (-1: no limit) when there is
  // nothing to do. `wake_fd`: returns early when it becomes readable.
  void Poll(int max_wait_ms, int wake_fd);

  // A dump of every process of the recordings that `user` owns; root owns all. Gives
  // their number.
  size_t Dump(const std::string& label, uid_t user);

  // Ends all recordings and hands them to their finishers; the last thing to be done.
  void StopAll();

  // Forgets finishers that have ended; waits for all of them, whose output is complete
  // then.
  void ReapFinishers();
  void AwaitFinishers();

  // Nothing runs, and nobody is connected.
  bool is_idle() const;

  // Recordings that were ever started.
  size_t started() const { return started_; }

 private:
  struct Hosted {
    std::unique_ptr<TraceRecording> recording;
    uid_t owner;
    gid_t group;
    FinishRequest request;
    ScopedFd standard_error;
    size_t connection;  // serial number; the recording ends with it
  };

  struct Connection {
    size_t serial;
    ControlChannel channel;
    uid_t user;
    gid_t group;
  };

  // Accepted, but nothing was said yet.
  struct Pending {
    ScopedFd fd;
    ucred peer;  // as the kernel tells it
    uint64_t deadline_ns;
  };

  Service(std::unique_ptr<RuntimeDirectory> directory, ServiceHooks hooks)
      : directory_(std::move(directory)), hooks_(std::move(hooks)) {}

  Status Listen();
  void StopListening();
  void Accept();
  void ServePending();
  // True: the connection was dealt with.
  bool Identify(Pending& pending);
  void ServeClient(int fd, pid_t pid, uid_t user);
  Session* SessionFor(const ProcessDescription& process, uid_t user, ClientOrigin origin);
  void EndTargetsOf(pid_t pid);
  void ServeConnections();
  // False: the connection is to be closed.
  bool Handle(Connection& connection, ControlMessage message);
  // Whether `user` may have one more recording.
  Status CheckRoom(uid_t user) const;
  Status Start(Connection& connection, ControlMessage message);
  Status Attach(Hosted& hosted, Connection& connection);
  bool AnySession(const std::function<bool(const Session&)>& is_such) const;
  size_t DumpFor(const Connection& connection, const std::string& label);
  void NoteConflicts(Session& session, uid_t owner);
  int ServeRecordings();
  void ServeMeanwhile();
  void FinishOver();
  void Finish(Hosted& hosted);
  [[noreturn]] void RunFinisher(Hosted& hosted, int connection);
  Connection* FindConnection(size_t serial);

  std::unique_ptr<RuntimeDirectory> directory_;
  ServiceHooks hooks_;
  ScopedFd listener_;
  bool owns_socket_ = false;
  bool is_behind_ = false;  // somebody's message waits in here, not in a socket
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Hosted>> hosted_;
  std::vector<pid_t> finishers_;
  size_t next_serial_ = 1;
  size_t started_ = 0;
  size_t turns_ = 0;
};

}  // namespace heapprofd
