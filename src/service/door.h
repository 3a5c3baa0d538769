// The way into a service: its socket, the page that tells programs of recordings, and the
// exec gate. Programs report and commands ask here.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "attach/gate/exec_gate.h"
#include "base/status.h"
#include "service/reception.h"
#include "service/runtime_directory.h"
#include "service/visitor.h"

namespace heapprofd {

// The service behind a door.
class Host {
 public:
  virtual ~Host() = default;
  virtual void AdmitCommand(Visitor visitor) = 0;
  // Answers the program in any case.
  virtual void AdmitProgram(Visitor visitor) = 0;
  // The process has connected when there was no room for it, and runs unrecorded.
  virtual void NoteMissed(pid_t pid) = 0;
};

class Door {
 public:
  // `listener`: see Reception. `directory` must outlive the door.
  static Result<std::unique_ptr<Door>> Open(RuntimeDirectory* directory,
                                            ScopedFd listener);

  // Adds the descriptors that become readable when there is something to do.
  void AddTo(std::vector<pollfd>* fds) const;

  // Milliseconds until Serve should be called in any case; -1: no need.
  int MillisecondsToNext() const;

  // Does a turn: admits programs and commands that have spoken.
  void Serve(Host& host);

  // True if no connection waits to be admitted.
  bool is_empty() const { return reception_ == nullptr || reception_->is_empty(); }

  // Admits nothing more; the next service in this place can start.
  void Close();

  // For a child that finishes a recording: the socket and the lock stay the parent's.
  void LeaveToParent();

  // Tells programs how many recordings run. `has_begun`: dormant programs ask again.
  void SetRecordings(size_t count, bool has_begun);

  // Gives a connection by which the exec gate tells of programs that start. `between`:
  // called now and then until it is there.
  Result<GateEnds> Watch(const std::function<void()>& between) {
    return exec_gate_.AddWatcher(between);
  }

 private:
  Door(RuntimeDirectory* directory, std::unique_ptr<Reception> reception)
      : directory_(directory), reception_(std::move(reception)) {}

  RuntimeDirectory* directory_;
  ExecGate exec_gate_;
  std::unique_ptr<Reception> reception_;  // nullptr: closed
};

}  // namespace heapprofd
