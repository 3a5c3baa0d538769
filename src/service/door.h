// What a service has in front of it: through a door come programs that report and
// commands that ask, and through it goes what concerns others than the service's own
// user. An ordinary user's service stands at the street itself (own_door.h); those of
// root's service are behind a front desk (desk_door.h).
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "attach/gate/gate_link.h"
#include "base/scoped_fd.h"
#include "base/status.h"
#include "service/visitor.h"

namespace heapprofd {

// What has become of a program that came in.
enum class Reply : uint8_t {
  kUnwanted,  // it was not answered
  kTaken,     // it is recorded here
  kSentAway,
};

// Who lives behind the door.
class Host {
 public:
  virtual ~Host() = default;
  virtual void AdmitCommand(Visitor visitor) = 0;
  virtual Reply AdmitProgram(Visitor& visitor) = 0;
  // Another user's recording has got the process; it may have been ours before.
  virtual void NoteTaken(pid_t pid) = 0;
  // The process could not be asked about, and runs unrecorded.
  virtual void NoteMissed(pid_t pid) = 0;
  virtual void DumpAll(const std::string& label) = 0;
  // No more comes: finish everything.
  virtual void Leave() = 0;
};

class Door {
 public:
  virtual ~Door() = default;

  // What becomes readable when somebody is there.
  virtual void AddTo(std::vector<pollfd>* fds) const = 0;

  // Milliseconds until Serve should be called in any case; -1: no need.
  virtual int MillisecondsToNext() const = 0;

  // A turn.
  virtual void Serve(Host& host) = 0;

  // Nobody is on his way in.
  virtual bool is_empty() const = 0;

  // Nobody comes in any more.
  virtual void Close() = 0;

  // In a child that finishes a recording: nothing of the door lives on there.
  virtual void LeaveToParent() = 0;

  // How many recordings run behind this door. `has_begun`: programs that lie dormant are
  // to ask again.
  virtual void SetRecordings(size_t count, bool has_begun) = 0;

  // Programs that start now come through the door if a recording could want them.
  virtual bool are_recordings_known() const = 0;

  // A connection by which the exec gate tells of programs that start. `between`: called
  // now and then until it is there; serves the others, this door included.
  virtual Result<GateEnds> Watch(const std::function<void()>& between) = 0;

  // All recordings of other users get a dump. Gives their number.
  virtual size_t DumpOthers(const std::string& label) = 0;
};

}  // namespace heapprofd
